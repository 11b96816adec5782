// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "cli/printable.h"

namespace agbox::cli {

namespace {

// 0, or the errno that ended the writing.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);  // whatever it says, write() then tells
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

void Console::error(std::string_view message) {
  // Where stderr is gone too there is nobody left to tell; the exit code still does.
  static_cast<void>(write_all(error_fd_, printable(message) + "\n"));
}

bool Console::flush() {
  const int problem = write_all(out_fd_, pending_);
  pending_.clear();
  if (problem == 0) return true;
  error("write to stdout: " + std::generic_category().message(problem));
  return false;
}

}  // namespace agbox::cli
