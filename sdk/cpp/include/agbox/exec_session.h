// SPDX-License-Identifier: Apache-2.0
// A conversation with an exec: its output, and its stdin or terminal. It survives a restart of the
// daemon, and so does the exec: output continues where it stopped, and input is neither lost nor
// sent twice. Ending the session does not end the exec.
//
//   ExecSession session(client, exec_id, {.sinks = {.on_stdout = print}});
//   std::thread typing([&] { session.write("ls\n"); session.end_input(); });
//   auto exec = session.run();  // until the exec has ended
//   typing.join();
#pragma once

#include <agbox/exec_run.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace agbox::sdk {

struct SessionOptions {
  // Take the input from the client that writes now. Otherwise the session only reads.
  bool write = true;
  // Called on the thread of run().
  OutputSinks sinks = {};
  // Where the output begins. Absent: with the last 64 KiB so far.
  std::optional<std::uint64_t> stdout_offset = {};
  std::optional<std::uint64_t> stderr_offset = {};
  // No more input is taken, with the reason; output continues. On the thread of run().
  std::function<void(const v1::InputStopped&)> on_input_stopped = {};
  // A stop request ends the session.
  FollowOptions follow = {};
};

class ExecSession {
 public:
  // The client must outlive the session.
  ExecSession(const RawClient& client, std::string exec_id, SessionOptions options);
  ~ExecSession();
  ExecSession(const ExecSession&) = delete;
  ExecSession& operator=(const ExecSession&) = delete;

  // Passes on output until the exec has ended, and returns how. ErrorKind::Cancelled after a stop
  // request. Call once.
  Result<v1::ExecStatus> run();

  // The rest may be called from any thread, also before run().

  // Waits while the exec is slow to take input. False if none is taken any more, the session has
  // ended, or after a stop request: the bytes were not, or not all of them, passed on.
  bool write(std::string_view bytes, const std::stop_token& stop = {});
  // After what was written: end of file for a command, Ctrl-D for a terminal.
  void end_input();
  // Of the exec's terminal.
  void resize(std::uint32_t rows, std::uint32_t columns);
  // To the foreground process group of the terminal, or the process group of the command.
  void send_signal(int number);

 private:
  Result<v1::ExecStatus> follow(ReconnectBackoff& backoff);
  Result<std::optional<v1::ExecStatus>> follow_once(ReconnectBackoff& backoff);
  std::optional<v1::ExecStatus> take(v1::AttachExecResponse& response);
  void on_attached(const v1::Attached& attached);
  // With the lock held.
  void send(const v1::AttachExecRequest& request);
  void send_unsent();

  const RawClient& client_;
  const std::string exec_id_;
  SessionOptions options_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::shared_ptr<AttachStream> stream_;   // while it is attached
  std::string unaccepted_;                 // written by the caller, and not accepted by the exec
  std::size_t sent_ = 0;                   // of these, sent on this connection
  std::optional<std::uint64_t> position_;  // of the first of them in the exec's input
  bool is_input_over_ = false;
  bool wants_end_ = false;
  bool has_sent_end_ = false;
  std::optional<v1::TerminalSize> size_;
};

}  // namespace agbox::sdk
