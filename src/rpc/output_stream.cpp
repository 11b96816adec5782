// SPDX-License-Identifier: Apache-2.0
#include "rpc/output_stream.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>
#include <utility>

#include "rpc/status.h"

namespace agbox {
namespace {

using google::protobuf::io::CodedOutputStream;

// Of ReadExecOutputResponse: offset (1) as a varint, data (2) as bytes.
constexpr std::uint8_t kOffsetTag = 0x08;
constexpr std::uint8_t kDataTag = 0x12;

void free_chunk(void* bytes) {
  delete[] static_cast<char*>(bytes);
}

// Encodes the message around the chunk by hand, so that the chunk is not copied.
grpc::ByteBuffer to_buffer(ExecOutput::Chunk chunk) {
  std::array<std::uint8_t, 2 + 2 * 10> head;  // a varint has at most ten bytes
  std::uint8_t* end = head.data();
  *end++ = kOffsetTag;
  end = CodedOutputStream::WriteVarint64ToArray(chunk.offset, end);
  *end++ = kDataTag;
  end = CodedOutputStream::WriteVarint64ToArray(chunk.size, end);
  const std::array slices{
      grpc::Slice(head.data(), static_cast<std::size_t>(end - head.data())),
      grpc::Slice(chunk.bytes.release(), chunk.size, free_chunk),
  };
  return {slices.data(), slices.size()};
}

Result<v1::ReadExecOutputRequest> parse(const grpc::ByteBuffer& request) {
  v1::ReadExecOutputRequest parsed;
  grpc::ByteBuffer bytes = request;
  if (!grpc::SerializationTraits<v1::ReadExecOutputRequest>::Deserialize(&bytes, &parsed).ok()) {
    return fail(reason::kInvalidArgument, "the request is not a ReadExecOutputRequest");
  }
  if (parsed.stream() != v1::OUTPUT_STREAM_STDOUT && parsed.stream() != v1::OUTPUT_STREAM_STDERR) {
    return fail(reason::kInvalidArgument,
                "stream must be OUTPUT_STREAM_STDOUT or OUTPUT_STREAM_STDERR");
  }
  return parsed;
}

}  // namespace

OutputStream* OutputStream::open(ControlLoop& control, OutputLoop& output, FindSource find,
                                 std::shared_ptr<OpenStreams> streams,
                                 const grpc::ByteBuffer& request) {
  auto stream = std::shared_ptr<OutputStream>(new OutputStream(output, std::move(streams)));
  stream->until_done_ = stream;
  auto parsed = parse(request);
  if (!parsed) {
    output.post([stream, error = parsed.error()] { stream->finish(to_status(error)); });
    return stream.get();
  }
  control.post([stream, find = std::move(find), request = std::move(*parsed)] {
    stream->find(find, request);
  });
  return stream.get();
}

void OutputStream::find(const FindSource& find, v1::ReadExecOutputRequest request) {
  auto on_end = [weak = weak_from_this()] {
    const auto stream = weak.lock();
    if (stream) stream->loop_.post([stream] { stream->exec_ended(); });
  };
  const std::string exec_id = request.exec_id();
  find(exec_id, std::move(on_end),
       [stream = shared_from_this(), request = std::move(request)](
           const Result<ExecOutputSource>& source) { stream->found(request, source); });
}

void OutputStream::found(const v1::ReadExecOutputRequest& request,
                         const Result<ExecOutputSource>& source) {
  if (!source) {
    loop_.post([stream = shared_from_this(), error = source.error()] {
      stream->finish(to_status(error));
    });
    return;
  }
  const bool is_stdout = request.stream() == v1::OUTPUT_STREAM_STDOUT;
  ExecOutputCut cut{.exec_id = request.exec_id(),
                    .stream = is_stdout ? "stdout" : "stderr",
                    .root = source->root,
                    .path = is_stdout ? source->stdout_path : source->stderr_path,
                    .limit_bytes = source->limit_bytes,
                    .offset = request.offset(),
                    .follow = request.follow(),
                    .is_over = source->is_terminal};
  loop_.post(
      [stream = shared_from_this(), cut = std::move(cut), on_end = source->on_end]() mutable {
        stream->begin(std::move(cut), std::move(on_end));
      });
}

void OutputStream::begin(ExecOutputCut cut, std::shared_ptr<const OnExecEnd> on_end) {
  if (has_finished_) return;  // cancelled meanwhile
  streams_->add(*this);
  if (has_finished_) return;
  auto place = loop_.take_place();
  if (!place) return finish(to_status(place.error()));
  place_ = std::move(*place);
  on_end_ = std::move(on_end);
  output_.emplace(loop_.watch(), std::move(cut), [weak = weak_from_this()] {
    if (const auto stream = weak.lock()) stream->write_more();
  });
  write_more();
}

void OutputStream::exec_ended() {
  if (output_) output_->exec_ended();
}

void OutputStream::end(const grpc::Status& status) {
  ends_with_ = status;
  write_more();
}

void OutputStream::write_more() {
  if (is_writing_ || has_finished_) return;
  if (is_cancelled_) return finish(grpc::Status::CANCELLED);
  if (ends_with_) return finish(*ends_with_);
  auto next = output_->next();
  if (auto* chunk = std::get_if<ExecOutput::Chunk>(&next)) {
    message_ = to_buffer(std::move(*chunk));
    is_writing_ = true;
    return StartWrite(&message_);
  }
  if (const auto* end = std::get_if<ExecOutput::End>(&next)) {
    finish(end->outcome ? grpc::Status::OK : to_status(end->outcome.error()));
  }
}

// Never during a write: its completion comes here.
void OutputStream::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;
  on_end_.reset();
  output_.reset();
  place_.reset();
  Finish(status);
}

void OutputStream::OnWriteDone(bool ok) {
  loop_.post([stream = shared_from_this(), ok] {
    stream->is_writing_ = false;
    stream->is_cancelled_ |= !ok;
    stream->message_.Clear();
    stream->write_more();
  });
}

void OutputStream::OnCancel() {
  loop_.post([stream = shared_from_this()] {
    stream->is_cancelled_ = true;
    stream->write_more();
  });
}

void OutputStream::OnDone() {
  // Its members belong to that thread.
  loop_.post([last = std::move(until_done_)] { last->streams_->remove(*last); });
}

}  // namespace agbox
