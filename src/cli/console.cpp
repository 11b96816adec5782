// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "base/utf8.h"
#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

// Return to the start of the line and erase it.
constexpr std::string_view kEraseLine = "\r\x1b[K";

std::optional<std::size_t> columns_of(int terminal) {
  winsize size{};
  const bool is_known = ::ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? std::optional<std::size_t>(size.ws_col) : std::nullopt;
}

std::string failure_json(std::string_view message, const FailureDetails& details) {
  std::string metadata;
  for (const auto& [key, value] : details.metadata) {
    metadata += (metadata.empty() ? "" : ", ") + json_quote(key) + ": " + json_quote(value);
  }
  return "{\"error\": {\"message\": " + json_quote(message) +
         ", \"code\": " + json_quote(details.code) + ", \"reason\": " + json_quote(details.reason) +
         ", \"metadata\": {" + metadata + "}}}\n";
}

// Returns 0 or an errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);  // errors show up in the next write()
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

int Console::write_stdout(std::string_view bytes) const {
  return write_all(out_fd_, bytes);
}

int Console::write_stderr(std::string_view bytes) const {
  return write_all(error_fd_, bytes);
}

void Console::write_message(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string message(std::exchange(shows_status_, false) ? kEraseLine : "");
  message += text;
  // If stderr cannot be written, only the exit code is left to report the failure.
  static_cast<void>(write_all(error_fd_, message));
}

void Console::error(std::string_view message) {
  write_message(printable(message) + "\n");
}

void Console::failure(std::string_view message, const FailureDetails& details) {
  error(message);
  if (failures_as_json_) out(failure_json(message, details));
}

bool Console::is_terminal() const {
  return ::isatty(error_fd_) == 1;
}

std::optional<std::size_t> Console::out_columns() const {
  return ::isatty(out_fd_) == 1 ? columns_of(out_fd_) : std::nullopt;
}

void Console::status(std::string_view text) {
  if (!is_terminal()) return;
  const std::string line = printable_line(text);
  // A wrapped line could not be erased.
  const std::string_view fitting = utf8_prefix(line, columns_of(error_fd_).value_or(80) - 1);
  const std::lock_guard lock(mutex_);
  static_cast<void>(write_all(error_fd_, std::string(kEraseLine).append(fitting)));
  shows_status_ = true;
}

void Console::clear_status() {
  write_message("");
}

bool Console::flush() {
  const int problem = write_all(out_fd_, pending_);
  pending_.clear();
  if (problem != 0) report_write_problem(problem);
  return problem == 0;
}

void Console::report_write_problem(int problem) {
  if (problem != EPIPE) error("write to stdout: " + std::generic_category().message(problem));
}

}  // namespace agbox::cli
