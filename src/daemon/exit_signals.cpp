// SPDX-License-Identifier: Apache-2.0
#include "daemon/exit_signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

constexpr int kExitSignals[] = {SIGTERM, SIGINT};

// State of the handlers, which must be async-signal-safe.
std::atomic<int> wake_fd{-1};
std::atomic<unsigned> limit_seconds{0};
static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<unsigned>::is_always_lock_free);

void set_exit_handlers(void (*handler)(int)) {
  for (const int signal : kExitSignals) std::signal(signal, handler);
}

extern "C" void begin_exit(int) {
  const int interrupted = errno;
  set_exit_handlers(SIG_DFL);  // the second signal kills
  ::alarm(limit_seconds);
  constexpr std::uint64_t kOnce = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd, &kOnce, sizeof kOnce);
  errno = interrupted;
}

extern "C" void end_overdue_exit(int) {
  constexpr std::string_view kLine =
      R"({"level":"ERROR","msg":"shutdown timed out, exiting","daemon":"agboxd"})"
      "\n";
  // A log that is not read may be the cause, so never block on it.
  pollfd log{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&log, 1, 0) == 1 && (log.revents & POLLOUT) != 0) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  }
  ::_exit(EXIT_FAILURE);
}

int open_wake_fd() {
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  AGBOX_CHECK(fd >= 0, "eventfd");
  return fd;
}

}  // namespace

ExitSignals::ExitSignals(const asio::any_io_executor& executor, std::chrono::seconds limit)
    : wake_(executor, open_wake_fd()) {
  wake_fd = wake_.native_handle();
  limit_seconds = static_cast<unsigned>(limit.count());
  std::signal(SIGALRM, end_overdue_exit);
  set_exit_handlers(begin_exit);
}

ExitSignals::~ExitSignals() {
  set_exit_handlers(SIG_DFL);
}

void ExitSignals::wait(std::function<void()> asked) {
  wake_.async_wait(asio::posix::descriptor_base::wait_read,
                   [asked = std::move(asked)](const boost::system::error_code& closed) {
                     if (!closed) asked();
                   });
}

}  // namespace agbox
