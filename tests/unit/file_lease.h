// SPDX-License-Identifier: Apache-2.0
// A lease on a file, as a process in a sandbox may take on its own logs: opening the file then
// blocks for up to 45 seconds, or fails if non-blocking.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "base/unique_fd.h"

namespace agbox {

class FileLease {
 public:
  explicit FileLease(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    EXPECT_NE(::signal(SIGIO, SIG_IGN), SIG_ERR);  // notifies that the file is being opened
    EXPECT_EQ(::fcntl(fd_.get(), F_SETLEASE, F_WRLCK), 0) << path;
  }

 private:
  UniqueFd fd_;
};

}  // namespace agbox
