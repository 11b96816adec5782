// SPDX-License-Identifier: Apache-2.0
#include "rpc/task_stream.h"

#include "rpc/status.h"

namespace agbox {

TaskStream* TaskStream::open(ControlLoop& loop, std::shared_ptr<OpenStreams> streams,
                             Result<Start> start) {
  auto stream = std::shared_ptr<TaskStream>(new TaskStream(loop, std::move(streams)));
  stream->until_done_ = stream;
  loop.post([stream, start = std::move(start)] {
    if (!start) return stream->finish(to_status(start.error()));
    stream->begin(*start);
  });
  return stream.get();
}

void TaskStream::begin(const Start& start) {
  if (is_cancelled_) return finish(grpc::Status::CANCELLED);
  streams_->add(*this);
  if (ends_with_) return finish(*ends_with_);
  task_ = start(
      [stream = shared_from_this()](grpc::ByteBuffer response) { return stream->write(response); },
      [stream = shared_from_this()](const Result<>& outcome) {
        stream->finish(outcome ? grpc::Status::OK : to_status(outcome.error()));
      });
}

asio::awaitable<bool> TaskStream::write(grpc::ByteBuffer response) {
  message_ = response;
  is_written_.reset();
  is_writing_ = true;
  StartWrite(&message_);
  co_return co_await is_written_.wait() && !is_cancelled_;
}

void TaskStream::cancel() {
  is_cancelled_ = true;
  if (task_) task_->cancel();
}

void TaskStream::end(const grpc::Status& status) {
  ends_with_ = status;
  if (task_) task_->cancel();
}

// Not during a write: its completion comes first.
void TaskStream::finish(const grpc::Status& status) {
  if (has_finished_) return;
  const grpc::Status& last = ends_with_ ? *ends_with_ : status;
  if (is_writing_) {
    outcome_ = last;
    return;
  }
  has_finished_ = true;
  task_.reset();
  Finish(last);
}

void TaskStream::OnWriteDone(bool ok) {
  loop_.post([stream = shared_from_this(), ok] {
    stream->is_writing_ = false;
    stream->message_.Clear();
    if (stream->outcome_) return stream->finish(*stream->outcome_);
    if (!ok) stream->cancel();
    stream->is_written_.set();
  });
}

void TaskStream::OnCancel() {
  loop_.post([stream = shared_from_this()] { stream->cancel(); });
}

void TaskStream::OnDone() {
  loop_.post([last = std::move(until_done_)] { last->streams_->remove(*last); });
}

}  // namespace agbox
