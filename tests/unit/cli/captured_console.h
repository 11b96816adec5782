// SPDX-License-Identifier: Apache-2.0
// A console whose output a test can read: both ends are files without a name.
#pragma once

#include <sys/mman.h>

#include <string>

#include "base/check.h"
#include "base/unique_fd.h"
#include "cli/console.h"

namespace agbox::cli {

class CapturedConsole {
 public:
  Console& console() { return console_; }
  std::string out() const { return content(out_); }
  std::string error() const { return content(error_); }
  int error_fd() const { return error_.get(); }

 private:
  static UniqueFd file() {
    UniqueFd fd(::memfd_create("console", MFD_CLOEXEC));
    AGBOX_CHECK(fd, "memfd_create failed");
    return fd;
  }
  static std::string content(const UniqueFd& fd) {
    std::string text(65536, '\0');
    const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
    AGBOX_CHECK(size >= 0, "pread failed");
    text.resize(static_cast<std::size_t>(size));
    return text;
  }

  UniqueFd out_ = file();
  UniqueFd error_ = file();
  Console console_{out_.get(), error_.get()};
};

}  // namespace agbox::cli
