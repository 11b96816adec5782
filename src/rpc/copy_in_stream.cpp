// SPDX-License-Identifier: Apache-2.0
#include "rpc/copy_in_stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "model/files/file_request.h"
#include "rpc/status.h"

namespace agbox {

CopyInStream::CopyInStream(FileCopies& copies, BeginFileCopy begin, v1::CopyInResponse* response)
    : copies_(copies),
      begin_(std::move(begin)),
      response_(response),
      streams_(copies.streams()),
      handle_(std::make_shared<FileCopyHandle>(copies.control())),
      wait_limit_(copies.io()) {}

CopyInStream* CopyInStream::open(FileCopies& copies, BeginFileCopy begin,
                                 v1::CopyInResponse* response) {
  auto stream = std::shared_ptr<CopyInStream>(new CopyInStream(copies, std::move(begin), response));
  stream->until_done_ = stream;
  copies.post([stream] { stream->streams_->add(*stream); });
  stream->StartRead(&stream->request_);
  return stream.get();
}

void CopyInStream::OnReadDone(bool ok) {
  copies_.post([stream = shared_from_this(), ok] { stream->received(ok); });
}

void CopyInStream::received(bool ok) {
  if (has_finished_) return;
  if (!has_begun_ && !ok) {
    return finish(to_status({reason::kInvalidArgument, "the request is not a CopyInRequest"}));
  }
  if (!has_begun_) return begin_copy();
  if (!ok) return close_pipe();  // the end of the client's stream
  if (request_.part_case() != v1::CopyInRequest::kData) {
    return finish(
        to_status({reason::kInvalidArgument, "data: every message but the first has it"}));
  }
  write();
}

void CopyInStream::begin_copy() {
  has_begun_ = true;
  if (!request_.has_target()) {
    return finish(to_status({reason::kInvalidArgument, "target: the first message must have it"}));
  }
  auto order = parse_copy_in(request_.target());
  if (!order) return finish(to_status(order.error()));
  handle_->begin(
      begin_, request_.target().sandbox_id(), std::move(*order),
      [weak = weak_from_this(), this](FilePipe pipe) {
        const auto stream = weak.lock();
        if (!stream) return;
        auto shared = std::make_shared<FilePipe>(std::move(pipe));
        copies_.post([stream, shared] { stream->opened(std::move(*shared)); });
      },
      [weak = weak_from_this(), this](Result<FilesReport> report) {
        const auto stream = weak.lock();
        if (stream) copies_.post([stream, report] { stream->reported(report); });
      });
}

void CopyInStream::opened(FilePipe pipe) {
  if (has_finished_) return;
  pipe_.emplace(copies_.io(), pipe.end.release());
  StartRead(&request_);
}

void CopyInStream::write() {
  limit_wait(copies_.stall_limit(), "the sandbox has taken nothing for too long");
  boost::asio::async_write(
      *pipe_, boost::asio::buffer(request_.data()),
      [stream = shared_from_this()](boost::system::error_code problem, std::size_t) {
        stream->written(!problem);
      });
}

void CopyInStream::written(bool is_complete) {
  if (has_finished_) return;
  wait_limit_.cancel();
  if (is_complete) return StartRead(&request_);
  close_pipe();  // its reader has ended, and the report says why
}

void CopyInStream::close_pipe() {
  pipe_.reset();
  limit_wait(FileCopies::kReportLimit,
             "the sandbox did not report whether it has copied everything");
}

void CopyInStream::limit_wait(std::chrono::milliseconds limit, const char* problem) {
  wait_limit_.expires_after(limit);
  wait_limit_.async_wait([weak = weak_from_this(), problem](boost::system::error_code cancelled) {
    const auto stream = weak.lock();
    if (!cancelled && stream) stream->finish(to_status({reason::kHostNotReady, problem}));
  });
}

void CopyInStream::reported(const Result<FilesReport>& report) {
  if (!report) return finish(to_status(report.error()));
  if (has_finished_) return;
  response_->set_entries(report->entries);
  response_->set_bytes(report->bytes);
  finish(grpc::Status::OK);
}

void CopyInStream::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;
  handle_->cancel();  // no effect if it has ended
  pipe_.reset();
  wait_limit_.cancel();
  Finish(status);
}

void CopyInStream::OnCancel() {
  copies_.post([stream = shared_from_this()] { stream->finish(grpc::Status::CANCELLED); });
}

void CopyInStream::OnDone() {
  // Its members belong to that thread.
  copies_.post([last = std::move(until_done_)] { last->streams_->remove(*last); });
}

}  // namespace agbox
