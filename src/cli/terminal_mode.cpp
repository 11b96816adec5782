// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal_mode.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "base/check.h"

namespace agbox::cli {

namespace {

// SIGINT, SIGTERM and, if it wants it, SIGHUP are handled by Interrupt, which restores the terminal
// too.
constexpr std::array kFatalSignals = {SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// The terminal in raw mode; -1 if there is none. A signal handler reads both.
std::atomic<int> raw_terminal = -1;
termios former_mode;
std::atomic<int> window_pipe = -1;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler reads them");

void restore_and_die(int number) {
  restore_terminal();
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void on_window_change(int) {
  const int saved = errno;
  const char byte = 0;
  static_cast<void>(!::write(window_pipe, &byte, 1));  // a full pipe has news already
  errno = saved;
}

}  // namespace

WindowSize window_size(int terminal) {
  winsize size{};
  if (::ioctl(terminal, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

void restore_terminal() {
  const int terminal = raw_terminal.exchange(-1);
  // Discards what was typed and not read: replies of the terminal to queries that the command
  // printed would otherwise be input of the user's shell.
  if (terminal >= 0) ::tcsetattr(terminal, TCSAFLUSH, &former_mode);
}

RawMode::RawMode(int terminal) {
  if (::tcgetattr(terminal, &former_mode) != 0) return;
  AGBOX_CHECK(raw_terminal.exchange(terminal) == -1, "one terminal in raw mode at a time");
  for (const int number : kFatalSignals) {
    struct sigaction former{};
    ::sigaction(number, nullptr, &former);
    if (former.sa_handler == SIG_DFL) ::signal(number, restore_and_die);
  }
  termios raw = former_mode;
  ::cfmakeraw(&raw);
  ::tcsetattr(terminal, TCSADRAIN, &raw);
}

RawMode::~RawMode() {
  restore_terminal();
  for (const int number : kFatalSignals) {
    struct sigaction present{};
    ::sigaction(number, nullptr, &present);
    if (present.sa_handler == restore_and_die) ::signal(number, SIG_DFL);
  }
}

WindowChanges::WindowChanges() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;  // the size then stays as it is
  reader_ = UniqueFd(ends[0]);
  writer_ = UniqueFd(ends[1]);
  AGBOX_CHECK(window_pipe.exchange(writer_.get()) == -1, "one observer of the window at a time");
  struct sigaction action{};
  action.sa_handler = on_window_change;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGWINCH, &action, nullptr);
}

WindowChanges::~WindowChanges() {
  if (!writer_) return;
  ::signal(SIGWINCH, SIG_DFL);
  window_pipe = -1;
}

void WindowChanges::clear() const {
  std::array<char, 64> bytes;
  while (::read(reader_.get(), bytes.data(), bytes.size()) > 0) {
  }
}

}  // namespace agbox::cli
