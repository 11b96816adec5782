// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/check.h"
#include "cli/terminal_mode.h"

namespace agbox::cli {

namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> pipe_of_handler = -1;
// Whether the signal at the same index of kSignals is handled, not ignored.
std::array<std::atomic<bool>, kSignals.size()> is_handled = {};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler reads them");

void notify_watcher(int fd, int signal) {
  const char byte = static_cast<char>(signal);
  // Cannot block: the pipe never holds more than a few bytes.
  static_cast<void>(!::write(fd, &byte, 1));
}

// Restores the default action of all signals, so that the next one terminates the program. Except
// SIGHUP: a window that is closed sends it more than once, by its shell and by the kernel.
void on_signal(int signal) {
  const int saved = errno;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (is_handled[i]) ::signal(kSignals[i], kSignals[i] == SIGHUP ? SIG_IGN : SIG_DFL);
  }
  restore_terminal();  // the next signal terminates the program
  notify_watcher(pipe_of_handler, signal);
  errno = saved;
}

}  // namespace

Interrupt::Interrupt(Hangup hangup) {
  std::array<int, 2> ends{};
  // Without a pipe, a signal terminates the program as usual.
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  reader_ = UniqueFd(ends[0]);
  writer_ = UniqueFd(ends[1]);
  AGBOX_CHECK(pipe_of_handler.exchange(writer_.get()) == -1, "one Interrupt at a time");
  watcher_ = std::thread([this] { watch(); });
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction former{};
    ::sigaction(kSignals[i], nullptr, &former);
    const bool is_wanted = kSignals[i] != SIGHUP || hangup == Hangup::Handled;
    // The parent ignores it on purpose (nohup).
    is_handled[i] = is_wanted && former.sa_handler != SIG_IGN;
    if (is_handled[i]) former_.emplace_back(kSignals[i], former);
  }
  for (const auto& [signal, former] : former_) {
    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    // Block the others during the handler, so that the first one decides the exit code.
    for (const int other : kSignals) ::sigaddset(&action.sa_mask, other);
    ::sigaction(signal, &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  if (!watcher_.joinable()) return;
  for (const auto& [signal, former] : former_) ::sigaction(signal, &former, nullptr);
  notify_watcher(writer_.get(), 0);
  watcher_.join();
  pipe_of_handler = -1;
}

void Interrupt::watch() {
  char signal = 0;
  while (::read(reader_.get(), &signal, 1) == 1 && signal != 0) {
    if (source_.stop_requested()) {
      // Two concurrent signals may be handled on two threads, so neither has terminated us yet.
      if (signal != SIGHUP) ::raise(signal);
      continue;
    }
    signal_ = signal;
    source_.request_stop();
  }
}

}  // namespace agbox::cli
