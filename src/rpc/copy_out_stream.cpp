// SPDX-License-Identifier: Apache-2.0
#include "rpc/copy_out_stream.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>

#include "model/files/file_request.h"
#include "rpc/status.h"

namespace agbox {
namespace {

constexpr std::size_t kCopyOutChunk = std::size_t{128} << 10;
constexpr const char* kNoReport = "the sandbox did not report whether it has sent everything";

}  // namespace

CopyOutStream::CopyOutStream(FileCopies& copies)
    : copies_(copies),
      streams_(copies.streams()),
      handle_(std::make_shared<FileCopyHandle>(copies.control())),
      wait_limit_(copies.io()) {}

CopyOutStream* CopyOutStream::open(FileCopies& copies, BeginFileCopy begin,
                                   const v1::CopyOutRequest& request) {
  auto stream = std::shared_ptr<CopyOutStream>(new CopyOutStream(copies));
  stream->until_done_ = stream;
  copies.post([stream, begin = std::move(begin), request] { stream->begin(begin, request); });
  return stream.get();
}

void CopyOutStream::begin(const BeginFileCopy& begin, const v1::CopyOutRequest& request) {
  streams_->add(*this);
  if (has_finished_) return;
  auto order = parse_copy_out(request);
  if (!order) return finish(to_status(order.error()));
  handle_->begin(
      begin, request.sandbox_id(), std::move(*order),
      [weak = weak_from_this(), this](FilePipe pipe) {
        const auto stream = weak.lock();
        if (!stream) return;
        auto shared = std::make_shared<FilePipe>(std::move(pipe));
        copies_.post([stream, shared] { stream->opened(std::move(*shared)); });
      },
      [weak = weak_from_this(), this](Result<FilesReport> report) {
        const auto stream = weak.lock();
        if (!stream) return;
        copies_.post([stream, report = std::move(report)]() mutable {
          stream->reported(std::move(report));
        });
      });
}

void CopyOutStream::opened(FilePipe pipe) {
  if (has_finished_) return;
  pipe_.emplace(copies_.io(), pipe.end.release());
  buffer_.resize(kCopyOutChunk);
  go_on();
}

void CopyOutStream::reported(Result<FilesReport> report) {
  if (has_finished_) return;
  report_ = std::move(report);
  // The pipe may be empty, and open in another process of the sandbox.
  if (is_reading_) pipe_->cancel();
  go_on();
}

void CopyOutStream::end(const grpc::Status& status) {
  ends_with_ = status;
  go_on();
}

void CopyOutStream::go_on() {
  if (has_finished_ || is_writing_) return;
  if (ends_with_) return finish(*ends_with_);
  if (report_ && !*report_) return finish(to_status(report_->error()));
  if (is_reading_) return;
  if (report_ && !is_at_end_) end_with_what_is_left();
  if (!is_at_end_) {
    if (pipe_) read();
    return;
  }
  if (!report_) return limit_wait(FileCopies::kReportLimit, kNoReport);
  if (has_sent_summary_) return finish(grpc::Status::OK);
  has_sent_summary_ = true;
  v1::CopyOutResponse last;
  v1::CopySummary* summary = last.mutable_summary();
  const FilesReport& report = **report_;
  summary->set_entries(report.entries);
  summary->set_bytes(report.bytes);
  summary->set_notes(report.notes);
  summary->set_first_note(report.first_note);
  send(std::move(last));
}

// All that the guest's process wrote is in the pipe by now; only another process that has the pipe
// could keep it open, and write more.
void CopyOutStream::end_with_what_is_left() {
  if (pipe_ && !left_) {
    int size = 0;
    left_ =
        ::ioctl(pipe_->native_handle(), FIONREAD, &size) == 0 ? static_cast<std::size_t>(size) : 0;
  }
  if (pipe_ && *left_ > 0) return;
  is_at_end_ = true;
  pipe_.reset();
}

void CopyOutStream::read() {
  is_reading_ = true;
  if (!left_) limit_wait(copies_.stall_limit(), "the sandbox has sent nothing for too long");
  pipe_->async_read_some(
      boost::asio::buffer(buffer_, std::min(buffer_.size(), left_.value_or(buffer_.size()))),
      [stream = shared_from_this()](boost::system::error_code problem, std::size_t size) {
        stream->received(problem, size);
      });
}

void CopyOutStream::received(boost::system::error_code problem, std::size_t size) {
  is_reading_ = false;
  wait_limit_.cancel();
  if (has_finished_) return;
  if (problem == boost::asio::error::operation_aborted) return go_on();  // by the report
  if (problem) {                                                         // its end
    is_at_end_ = true;
    pipe_.reset();
    return go_on();
  }
  if (left_) *left_ -= size;
  v1::CopyOutResponse chunk;
  chunk.set_data(buffer_.data(), size);
  send(std::move(chunk));
}

void CopyOutStream::send(v1::CopyOutResponse message) {
  message_ = std::move(message);
  is_writing_ = true;
  StartWrite(&message_);
}

void CopyOutStream::limit_wait(std::chrono::milliseconds limit, const char* problem) {
  wait_limit_.expires_after(limit);
  wait_limit_.async_wait([weak = weak_from_this(), problem](boost::system::error_code cancelled) {
    const auto stream = weak.lock();
    if (cancelled || !stream) return;
    stream->ends_with_ = to_status({reason::kHostNotReady, problem});
    stream->go_on();
  });
}

// Never during a write: its completion comes here.
void CopyOutStream::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;
  handle_->cancel();  // no effect if it has ended
  pipe_.reset();
  wait_limit_.cancel();
  Finish(status);
}

void CopyOutStream::OnWriteDone(bool ok) {
  copies_.post([stream = shared_from_this(), ok] {
    stream->is_writing_ = false;
    if (!ok) stream->ends_with_ = grpc::Status::CANCELLED;
    stream->go_on();
  });
}

void CopyOutStream::OnCancel() {
  copies_.post([stream = shared_from_this()] {
    stream->ends_with_ = grpc::Status::CANCELLED;
    stream->go_on();
  });
}

void CopyOutStream::OnDone() {
  // Its members belong to that thread.
  copies_.post([last = std::move(until_done_)] { last->streams_->remove(*last); });
}

}  // namespace agbox
