// SPDX-License-Identifier: Apache-2.0
#include "exec_process.h"

#include <utility>

#include "conversions.h"
#include "wait_stop.h"

namespace agbox::sdk {

namespace {

// So much output that nobody reads is kept here; more stays with the daemon.
constexpr std::size_t kMostQueued = std::size_t{1} << 20;

}  // namespace

Process::Session::Session(std::shared_ptr<const ClientCore> client, std::string exec_id,
                          const AttachOptions& options)
    : client_(std::move(client)),
      id_(std::move(exec_id)),
      stdout_offset_(options.stdout_offset),
      stderr_offset_(options.stderr_offset),
      exec_(client_->raw(), id_, session_options(options)),
      thread_([this] {
        auto ended = exec_.run();
        const std::lock_guard lock(mutex_);
        ended_ = std::move(ended);
        changed_.notify_all();
      }) {}

Process::Session::~Session() {
  bool must_cancel = false;
  bool was_lost = false;
  {
    const std::lock_guard lock(mutex_);
    was_lost = ended_ && !*ended_;
    must_cancel = !is_detached_ && (!ended_ || was_lost);
  }
  if (must_cancel) {
    v1::CancelExecRequest request;
    request.set_exec_id(id_);
    FollowOptions follow = client_->follow();
    if (was_lost) follow.attempts = 0;  // the session has waited for the daemon already
    ReconnectBackoff backoff(client_->raw(), "cancel of exec " + id_, std::move(follow));
    // A destructor has no one to report it to; cancel() does.
    static_cast<void>(backoff.retry([&] { return client_->raw().cancel_exec(request); }));
  }
  stop_.request_stop();
}

SessionOptions Process::Session::session_options(const AttachOptions& options) {
  SessionOptions session;
  session.write = options.takes_input;
  session.sinks.on_stdout = [this](std::string_view bytes) {
    take(OutputStream::Stdout, stdout_offset_, bytes);
  };
  session.sinks.on_stderr = [this](std::string_view bytes) {
    take(OutputStream::Stderr, stderr_offset_, bytes);
  };
  session.stdout_offset = options.stdout_offset;
  session.stderr_offset = options.stderr_offset;
  session.on_input_stopped = [this](const v1::InputStopped& stopped) {
    const std::lock_guard lock(mutex_);
    input_problem_ = stopped.message();
  };
  session.follow = client_->follow(stop_.get_token());
  return session;
}

// On the thread of the session. While it waits for the reader, the daemon keeps what follows.
void Process::Session::take(OutputStream stream, std::uint64_t& offset, std::string_view bytes) {
  const std::uint64_t begin = std::exchange(offset, offset + bytes.size());
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop_.get_token(),
                [this] { return queued_bytes_ < kMostQueued || drops_output_; });
  if (drops_output_) return;
  queued_bytes_ += bytes.size();
  chunks_.push_back({.stream = stream, .offset = begin, .bytes = std::string(bytes)});
  changed_.notify_all();
}

template <class Condition>
Result<void> Process::Session::wait_until(std::unique_lock<std::mutex>& lock,
                                          const WaitLimits& limits, Condition is_done) {
  const bool is_in_time = limits.wait_timeout > std::chrono::milliseconds::zero()
                              ? changed_.wait_for(lock, limits.stop, limits.wait_timeout, is_done)
                              : changed_.wait(lock, limits.stop, is_done);
  if (is_in_time) return {};
  if (!limits.stop.stop_requested()) return std::unexpected(wait_timed_out(limits, "exec " + id_));
  return std::unexpected(Error{.kind = ErrorKind::Cancelled,
                               .code = StatusCode::Cancelled,
                               .message = "waiting for exec " + id_ + " was stopped"});
}

Result<std::optional<OutputChunk>> Process::Session::next(const WaitLimits& limits) {
  std::unique_lock lock(mutex_);
  const auto waited = wait_until(lock, limits, [this] { return !chunks_.empty() || ended_; });
  if (!waited) return std::unexpected(waited.error());
  if (chunks_.empty()) {
    if (!*ended_) return std::unexpected(ended_->error());
    return std::nullopt;
  }
  OutputChunk chunk = std::move(chunks_.front());
  chunks_.pop_front();
  queued_bytes_ -= chunk.bytes.size();
  changed_.notify_all();
  return chunk;
}

Result<CommandResult> Process::Session::wait(const WaitLimits& limits) {
  std::unique_lock lock(mutex_);
  drops_output_ = true;
  chunks_.clear();
  queued_bytes_ = 0;
  changed_.notify_all();
  const auto waited = wait_until(lock, limits, [this] { return ended_.has_value(); });
  if (!waited) return std::unexpected(waited.error());
  if (!*ended_) return std::unexpected(ended_->error());
  return result_of(**ended_);
}

Result<void> Process::Session::write(std::string_view bytes, const std::stop_token& stop) {
  if (exec_.write(bytes, stop)) return {};
  if (stop.stop_requested()) {
    return std::unexpected(Error{.kind = ErrorKind::Cancelled,
                                 .code = StatusCode::Cancelled,
                                 .message = "writing to exec " + id_ + " was stopped"});
  }
  const std::lock_guard lock(mutex_);
  std::string reason = input_problem_.empty() ? "" : ": " + input_problem_;
  return std::unexpected(
      Error{.kind = ErrorKind::ExecNotRunning,
            .code = StatusCode::FailedPrecondition,
            .message = "exec " + id_ + " takes no input" + reason +
                       "; it was started without takes_input, its input was ended, or it has ended",
            .metadata = {{"exec_id", id_}}});
}

Result<CommandResult> Process::Session::cancel(const WaitLimits& limits) {
  v1::CancelExecRequest request;
  request.set_exec_id(id_);
  const auto cancelled = client_->raw().cancel_exec(request);
  if (!cancelled) return std::unexpected(cancelled.error());
  return wait(limits);
}

void Process::Session::detach() {
  const std::lock_guard lock(mutex_);
  is_detached_ = true;
}

Process::Process(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Process::Process(Process&&) noexcept = default;
Process& Process::operator=(Process&&) noexcept = default;
Process::~Process() = default;

const std::string& Process::id() const {
  return session_->id();
}

Result<std::optional<OutputChunk>> Process::next(const WaitLimits& limits) {
  return session_->next(limits);
}

Result<CommandResult> Process::wait(const WaitLimits& limits) {
  return session_->wait(limits);
}

Result<void> Process::write(std::string_view bytes, const std::stop_token& stop) {
  return session_->write(bytes, stop);
}

void Process::end_input() {
  session_->exec().end_input();
}

void Process::resize(std::uint32_t rows, std::uint32_t columns) {
  session_->exec().resize(rows, columns);
}

void Process::send_signal(int number) {
  session_->exec().send_signal(number);
}

Result<CommandResult> Process::cancel(const WaitLimits& limits) {
  return session_->cancel(limits);
}

void Process::detach() {
  session_->detach();
}

}  // namespace agbox::sdk
