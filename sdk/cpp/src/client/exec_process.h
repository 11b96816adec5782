// SPDX-License-Identifier: Apache-2.0
// The inside of a Process: a session with the exec on a thread of its own, which fills a queue of
// output that the caller reads.
#pragma once

#include <agbox/client.h>
#include <agbox/exec_session.h>
#include <agbox/process.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "client_core.h"

namespace agbox::sdk {

class Process::Session {
 public:
  Session(std::shared_ptr<const ClientCore> client, std::string exec_id,
          const AttachOptions& options);
  // Cancels the exec, unless it has ended or was detached.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& id() const { return id_; }
  Result<std::optional<OutputChunk>> next(const WaitLimits& limits);
  Result<CommandResult> wait(const WaitLimits& limits);
  Result<void> write(std::string_view bytes, const std::stop_token& stop);
  Result<CommandResult> cancel(const WaitLimits& limits);
  void detach();
  ExecSession& exec() { return exec_; }

 private:
  SessionOptions session_options(const AttachOptions& options);
  void take(OutputStream stream, std::uint64_t& offset, std::string_view bytes);
  // True when `is_done` holds; the error is that of the limits.
  template <class Condition>
  Result<void> wait_until(std::unique_lock<std::mutex>& lock, const WaitLimits& limits,
                          Condition is_done);

  std::shared_ptr<const ClientCore> client_;  // shared with all that use its connection
  const std::string id_;
  std::uint64_t stdout_offset_;  // of the next byte, on the thread of the session
  std::uint64_t stderr_offset_;
  std::stop_source stop_;
  ExecSession exec_;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<OutputChunk> chunks_;
  std::size_t queued_bytes_ = 0;
  bool drops_output_ = false;
  bool is_detached_ = false;
  std::string input_problem_;
  std::optional<Result<v1::ExecStatus>> ended_;
  // ExecSession::run() blocks. Declared last: it uses everything above.
  std::jthread thread_;
};

}  // namespace agbox::sdk
