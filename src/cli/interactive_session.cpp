// SPDX-License-Identifier: Apache-2.0
#include "cli/interactive_session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <thread>
#include <utility>

#include "cli/terminal_mode.h"

namespace agbox::cli {

namespace {

constexpr std::size_t kInputBytes = std::size_t{32} << 10;

}  // namespace

InteractiveSession::InteractiveSession(const Console& console, const sdk::RawClient& client,
                                       std::string exec_id, Options options)
    : console_(console),
      client_(client),
      exec_id_(std::move(exec_id)),
      options_(std::move(options)) {}

sdk::Result<v1::ExecStatus> InteractiveSession::run(const sdk::OutputSinks& sinks,
                                                    const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { detach_.request_stop(); });
  sdk::SessionOptions session_options{
      .write = options_.takes_input, .sinks = sinks, .follow = {.stop = detach_.get_token()}};
  if (options_.begins_at_start) {
    session_options.stdout_offset = 0;
    session_options.stderr_offset = 0;
  }
  session_options.on_input_stopped = [this](const v1::InputStopped& stopped) {
    // The terminal is in raw mode.
    static_cast<void>(console_.write_stderr("\r\nagbox: " + stopped.message() + "\r\n"));
  };
  sdk::ExecSession session(client_, exec_id_, std::move(session_options));
  std::optional<RawMode> raw;
  if (options_.is_terminal) raw.emplace(STDIN_FILENO);
  // Nothing else ends a wait for keys.
  const UniqueFd over(::eventfd(0, EFD_CLOEXEC));
  std::thread input;
  if (options_.takes_input) {
    input = std::thread([this, &session, &over] { pass_input(session, over.get()); });
  }
  auto ended = session.run();
  const std::uint64_t one = 1;
  static_cast<void>(!::write(over.get(), &one, sizeof one));
  if (input.joinable()) input.join();
  return ended;
}

void InteractiveSession::pass_input(sdk::ExecSession& session, int until) {
  std::optional<WindowChanges> window;
  const auto follow_window = [&] {
    const WindowSize size = window_size(STDIN_FILENO);
    session.resize(size.rows, size.columns);
  };
  if (options_.is_terminal) {
    window.emplace();
    follow_window();  // it may have changed since the exec was created
  }
  while (true) {
    std::array<pollfd, 3> polled{
        {{until, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {window ? window->fd() : -1, POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    if (polled[2].revents != 0) {
      window->clear();
      follow_window();
    }
    if (polled[1].revents != 0 && !pass_bytes(session)) break;
  }
  // Input is over, but the window may still change.
  while (options_.is_terminal) {
    std::array<pollfd, 2> polled{{{until, POLLIN, 0}, {window->fd(), POLLIN, 0}}};
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) {
      window->clear();
      follow_window();
    }
  }
}

// False if there is no more to pass on.
bool InteractiveSession::pass_bytes(sdk::ExecSession& session) {
  std::array<char, kInputBytes> bytes;
  const ssize_t got = ::read(STDIN_FILENO, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) {
    session.end_input();
    return false;
  }
  const std::string_view read(bytes.data(), static_cast<std::size_t>(got));
  if (!options_.is_terminal) return session.write(read);
  const DetachKeys::Typed typed = options_.detach_keys.feed(read);
  session.write(typed.bytes);  // if it is not taken, the user can still detach
  if (!typed.is_detach) return true;
  is_detached_ = true;
  detach_.request_stop();
  return false;
}

}  // namespace agbox::cli
