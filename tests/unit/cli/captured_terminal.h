// SPDX-License-Identifier: Apache-2.0
// A terminal whose output a test can read.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace agbox::cli {

// What a terminal of `columns` was sent.
class CapturedTerminal {
 public:
  explicit CapturedTerminal(unsigned short columns) {
    EXPECT_EQ(::grantpt(master_.get()), 0);
    EXPECT_EQ(::unlockpt(master_.get()), 0);
    slave_ = UniqueFd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(slave_.get(), TIOCSWINSZ, &size), 0);
  }
  int fd() const { return slave_.get(); }
  // The kernel may pass one text on in several pieces.
  void expect(std::string_view text) const {
    std::string received(text.size(), '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const ssize_t more = ::read(master_.get(), received.data() + size, text.size() - size);
      ASSERT_GT(more, 0);
      size += static_cast<std::size_t>(more);
      ASSERT_EQ(received.substr(0, size), text.substr(0, size));
    }
    int left = 0;
    EXPECT_EQ(::ioctl(master_.get(), FIONREAD, &left), 0);
    EXPECT_EQ(left, 0) << "after " << text;
  }

 private:
  UniqueFd master_{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  UniqueFd slave_;
};

}  // namespace agbox::cli
