// SPDX-License-Identifier: Apache-2.0
#include <agbox/exec_session.h>

#include <algorithm>
#include <utility>

namespace agbox::sdk {

namespace {

// The daemon accepts what it can write into the exec's pipe; it takes this much more.
constexpr std::size_t kMostUnaccepted = std::size_t{64} << 10;
constexpr std::size_t kMessageBytes = std::size_t{32} << 10;

}  // namespace

ExecSession::ExecSession(const RawClient& client, std::string exec_id, SessionOptions options)
    : client_(client),
      exec_id_(std::move(exec_id)),
      options_(std::move(options)),
      is_input_over_(!options_.write) {}

ExecSession::~ExecSession() = default;

Result<v1::ExecStatus> ExecSession::run() {
  ReconnectBackoff backoff(client_, "session with exec " + exec_id_, options_.follow);
  const auto outcome = follow(backoff);
  const std::lock_guard lock(mutex_);
  is_input_over_ = true;
  changed_.notify_all();
  return outcome;
}

Result<v1::ExecStatus> ExecSession::follow(ReconnectBackoff& backoff) {
  while (true) {
    auto ended = follow_once(backoff);
    if (ended && *ended) return std::move(**ended);
    const std::optional<Error> loss = ended ? std::nullopt : std::optional(ended.error());
    if (auto waited = backoff.wait_after(loss); !waited) return std::unexpected(waited.error());
  }
}

// One connection: until the exec has ended, or the connection is lost.
Result<std::optional<v1::ExecStatus>> ExecSession::follow_once(ReconnectBackoff& backoff) {
  if (backoff.is_stopped()) return std::unexpected(backoff.stopped());
  const auto stream = std::make_shared<AttachStream>(client_.attach_exec());
  const std::stop_callback on_stop(options_.follow.stop, [&stream] { stream->cancel(); });
  v1::AttachExecRequest request;
  v1::AttachStart* start = request.mutable_start();
  start->set_exec_id(exec_id_);
  {
    const std::lock_guard lock(mutex_);
    start->set_write(!is_input_over_);
  }
  start->set_output(options_.sinks.on_stdout || options_.sinks.on_stderr);
  if (options_.stdout_offset) start->set_stdout_offset(*options_.stdout_offset);
  if (options_.stderr_offset) start->set_stderr_offset(*options_.stderr_offset);
  stream->send(request);  // if it fails, next() says why
  std::optional<v1::ExecStatus> exec;
  Result<std::optional<v1::AttachExecResponse>> response = std::nullopt;
  while ((response = stream->next()) && *response) {
    backoff.reset();
    if ((*response)->has_attached()) {
      const std::lock_guard lock(mutex_);
      stream_ = stream;
      on_attached((*response)->attached());
    }
    if (auto ended = take(**response)) exec = std::move(ended);
  }
  const std::lock_guard lock(mutex_);
  stream_.reset();
  if (exec) return exec;
  if (backoff.is_stopped()) return std::unexpected(backoff.stopped());
  if (!response) return std::unexpected(response.error());
  return std::nullopt;
}

std::optional<v1::ExecStatus> ExecSession::take(v1::AttachExecResponse& response) {
  switch (response.message_case()) {
    case v1::AttachExecResponse::kOutput: {
      const v1::AttachOutput& output = response.output();
      const bool is_stderr = output.stream() == v1::OUTPUT_STREAM_STDERR;
      (is_stderr ? options_.stderr_offset : options_.stdout_offset) =
          output.offset() + output.data().size();
      const auto& sink = is_stderr ? options_.sinks.on_stderr : options_.sinks.on_stdout;
      if (sink) sink(output.data());
      return std::nullopt;
    }
    case v1::AttachExecResponse::kInputAccepted: {
      const std::lock_guard lock(mutex_);
      const std::uint64_t accepted =
          response.input_accepted() -
          std::min(response.input_accepted(), position_.value_or(response.input_accepted()));
      const std::size_t size = std::min<std::size_t>(accepted, sent_);
      unaccepted_.erase(0, size);
      sent_ -= size;
      position_ = response.input_accepted();
      send_unsent();
      changed_.notify_all();
      return std::nullopt;
    }
    case v1::AttachExecResponse::kInputStopped: {
      bool was_expected = false;
      {
        const std::lock_guard lock(mutex_);
        // The end was passed on before the connection was lost.
        was_expected = wants_end_ && unaccepted_.empty();
        is_input_over_ = true;
        unaccepted_.clear();
        sent_ = 0;
        changed_.notify_all();
      }
      if (options_.on_input_stopped && !was_expected)
        options_.on_input_stopped(response.input_stopped());
      return std::nullopt;
    }
    case v1::AttachExecResponse::kEnded:
      return std::move(*response.mutable_ended());
    default:
      return std::nullopt;
  }
}

// What the exec has got although it was not accepted, because the daemon ended in between, is not
// sent again.
void ExecSession::on_attached(const v1::Attached& attached) {
  if (position_ && attached.input_offset() > *position_) {
    const std::uint64_t known = attached.input_offset() - *position_;
    unaccepted_.erase(0, std::min<std::size_t>(known, unaccepted_.size()));
  }
  position_ = attached.input_offset();
  sent_ = 0;
  has_sent_end_ = false;
  if (size_) {
    v1::AttachExecRequest request;
    *request.mutable_resize() = *size_;
    if (!is_input_over_) send(request);
  }
  send_unsent();
  changed_.notify_all();
}

void ExecSession::send(const v1::AttachExecRequest& request) {
  // If it fails the connection is lost: next() says so, and what counts is sent on the next one.
  if (stream_) static_cast<void>(stream_->send(request));
}

void ExecSession::send_unsent() {
  if (!stream_ || is_input_over_) return;
  while (sent_ < unaccepted_.size()) {
    v1::AttachExecRequest request;
    request.set_input(unaccepted_.substr(sent_, kMessageBytes));
    sent_ += request.input().size();
    send(request);
  }
  if (!wants_end_ || std::exchange(has_sent_end_, true)) return;
  v1::AttachExecRequest request;
  request.mutable_end_input();
  send(request);
}

bool ExecSession::write(std::string_view bytes, const std::stop_token& stop) {
  while (!bytes.empty()) {
    std::unique_lock lock(mutex_);
    const bool may_write = changed_.wait(
        lock, stop, [this] { return is_input_over_ || unaccepted_.size() < kMostUnaccepted; });
    if (!may_write || is_input_over_) return false;
    const std::size_t size = std::min(bytes.size(), kMostUnaccepted - unaccepted_.size());
    unaccepted_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    send_unsent();
  }
  return true;
}

void ExecSession::end_input() {
  const std::lock_guard lock(mutex_);
  wants_end_ = true;
  send_unsent();
}

void ExecSession::resize(std::uint32_t rows, std::uint32_t columns) {
  const std::lock_guard lock(mutex_);
  size_.emplace();
  size_->set_rows(rows);
  size_->set_columns(columns);
  v1::AttachExecRequest request;
  *request.mutable_resize() = *size_;
  if (!is_input_over_) send(request);
}

void ExecSession::send_signal(int number) {
  const std::lock_guard lock(mutex_);
  v1::AttachExecRequest request;
  request.set_signal(static_cast<std::uint32_t>(number));
  send(request);
}

}  // namespace agbox::sdk
