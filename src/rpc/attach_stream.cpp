// SPDX-License-Identifier: Apache-2.0
#include "rpc/attach_stream.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <utility>
#include <variant>

#include "model/exec/terminal_size.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "rpc/status.h"

namespace agbox {
namespace {

constexpr std::size_t kMaxInputBytes = std::size_t{64} << 10;  // of one message
// Clients wait when they are 64 KiB ahead, so one that keeps to the rules is never blocked here,
// and its other messages are not delayed.
constexpr std::size_t kMaxUnwritten = 2 * kMaxInputBytes;
constexpr std::uint64_t kReplayBytes = std::uint64_t{64} << 10;
constexpr std::uint32_t kMaxSignal = 64;

std::unexpected<Error> invalid(const std::string& message) {
  return std::unexpected(Error(reason::kInvalidArgument, message));
}

v1::InputStopped stopped_by(v1::InputStopped::Reason reason, std::string message) {
  v1::InputStopped stopped;
  stopped.set_reason(reason);
  stopped.set_message(std::move(message));
  return stopped;
}

grpc::ByteBuffer to_bytes(const v1::AttachExecResponse& response) {
  grpc::ByteBuffer bytes;
  bool is_own = false;
  // Fails only for a message of more than 2 GiB.
  static_cast<void>(
      grpc::SerializationTraits<v1::AttachExecResponse>::Serialize(response, &bytes, &is_own));
  return bytes;
}

}  // namespace

AttachStream* AttachStream::open(ControlLoop& control, OutputLoop& output, Directory& directory,
                                 std::shared_ptr<OpenStreams> streams) {
  auto stream = std::shared_ptr<AttachStream>(
      new AttachStream(control, output, directory, std::move(streams)));
  stream->until_done_ = stream;
  output.post([stream] {
    if (stream->streams_->size() >= maxima::kOutputStreams) {
      return stream->end(to_status({reason::kResourceExhausted,
                                    "clients that are attached to execs or read their output: at "
                                    "most " +
                                        std::to_string(maxima::kOutputStreams) +
                                        " are possible; wait until some of them end"}));
    }
    stream->streams_->add(*stream);
    stream->read_next();
  });
  return stream.get();
}

// --- on the control thread ---

void AttachStream::fail(const Error& error) {
  loop_.post([stream = shared_from_this(), error] { stream->end(to_status(error)); });
}

void AttachStream::find_exec(const v1::AttachStart& start) {
  directory_.get_exec(start.exec_id(),
                      [stream = shared_from_this(), start](const Result<v1::ExecStatus>& exec) {
                        if (!exec) return stream->fail(exec.error());
                        stream->find_output(start, *exec);
                      });
}

void AttachStream::find_output(v1::AttachStart start, v1::ExecStatus exec) {
  auto on_end = [weak = weak_from_this()] {
    const auto stream = weak.lock();
    if (stream) stream->loop_.post([stream] { stream->exec_ended(); });
  };
  const std::string exec_id = start.exec_id();
  directory_.find_exec_output(exec_id, std::move(on_end),
                              [stream = shared_from_this(), start = std::move(start),
                               exec = std::move(exec)](const Result<ExecOutputSource>& source) {
                                if (!source) return stream->fail(source.error());
                                stream->take_input(start, {.exec = exec, .source = *source});
                              });
}

void AttachStream::take_input(const v1::AttachStart& start, Found found) {
  const auto go_on = [](const std::shared_ptr<AttachStream>& stream, const v1::AttachStart& with,
                        Found all) {
    // Not copyable, as posted work must be.
    auto shared = std::make_shared<Found>(std::move(all));
    stream->loop_.post([stream, with, shared] { stream->begin(with, std::move(*shared)); });
  };
  if (!start.write() || found.source.is_terminal) {
    return go_on(shared_from_this(), start, std::move(found));
  }
  auto take_over = [weak = weak_from_this(), &control = control_,
                    &loop = loop_](std::function<void()> released) {
    loop.post([weak, &control, released = std::move(released)] {
      if (const auto stream = weak.lock()) {
        stream->stop_input(v1::InputStopped::REASON_TAKEN_OVER,
                           "another client took over the input of exec " + stream->exec_id_);
      }
      control.post(released);
    });
  };
  auto writer = std::make_shared<const InputWriter>(InputWriter{.take_over = std::move(take_over)});
  auto shared = std::make_shared<Found>(std::move(found));
  directory_.attach_exec_input(
      start.exec_id(), writer,
      [stream = shared_from_this(), start, shared, writer, go_on](Result<ExecInput> input) {
        if (input) {
          shared->input = std::move(*input);
          shared->writer = writer;
        } else if (input.error().reason() == reason::kExecInputClosed) {
          shared->stopped = stopped_by(v1::InputStopped::REASON_CLOSED, input.error().message());
        } else if (input.error().reason() == reason::kExecInputTaken) {
          shared->stopped =
              stopped_by(v1::InputStopped::REASON_TAKEN_OVER, input.error().message());
        } else if (input.error().reason() != reason::kExecAlreadyTerminal) {
          return stream->fail(input.error());
        }
        go_on(stream, start, std::move(*shared));
      });
}

// --- on the output thread ---

void AttachStream::begin(const v1::AttachStart& start, Found found) {
  if (has_finished_) return;  // cancelled meanwhile
  has_begun_ = true;
  is_over_ = is_over_ || found.source.is_terminal;
  on_end_ = found.source.on_end;
  stopped_ = std::move(found.stopped);
  attached_.emplace();
  attached_->set_input_offset(found.input.position);
  *attached_->mutable_exec() = std::move(found.exec);
  writer_ = std::move(found.writer);
  if (found.input.pipe) {
    accepted_ = reported_ = found.input.position;
    pipe_.emplace(loop_.watch().executor(), found.input.pipe.release());
  }
  if (start.output()) {
    if (const auto begun = begin_output(start, found.source); !begun) {
      return end(to_status(begun.error()));
    }
  }
  read_next();
  write_more();
}

Result<> AttachStream::begin_output(const v1::AttachStart& start, const ExecOutputSource& source) {
  const auto add = [&](v1::OutputStream stream, const char* name, const std::string& path,
                       std::optional<std::uint64_t> offset) -> Result<> {
    AGBOX_TRY(place, loop_.take_place());
    ExecOutputCut cut{.exec_id = exec_id_,
                      .stream = name,
                      .root = source.root,
                      .path = path,
                      .limit_bytes = source.limit_bytes,
                      .offset = offset.value_or(0),
                      .follow = true,
                      .is_over = is_over_};
    if (!offset) cut.tail_bytes = kReplayBytes;
    auto on_available = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->write_more();
    };
    // make_unique() would have to move the reader of the log, which cannot be moved.
    // NOLINTNEXTLINE(modernize-make-unique)
    readers_.push_back(std::unique_ptr<Reader>(
        new Reader{.stream = stream,
                   .place = std::move(place),
                   .output = ExecOutput(loop_.watch(), std::move(cut), on_available)}));
    return {};
  };
  const auto given = [](bool is_set, std::uint64_t offset) {
    return is_set ? std::optional(offset) : std::nullopt;
  };
  AGBOX_TRY_VOID(add(v1::OUTPUT_STREAM_STDOUT, "stdout", source.stdout_path,
                     given(start.has_stdout_offset(), start.stdout_offset())));
  // The file of a terminal's stderr stays empty.
  return add(v1::OUTPUT_STREAM_STDERR, "stderr", source.stderr_path,
             given(start.has_stderr_offset(), start.stderr_offset()));
}

void AttachStream::exec_ended() {
  is_over_ = true;
  // Each says at once that it has news; all of them must know before one is read to its end.
  is_informing_ = true;
  for (const auto& reader : readers_) reader->output.exec_ended();
  is_informing_ = false;
  write_more();
}

// --- from the client ---

void AttachStream::read_next() {
  // After `start`, only once it is attached.
  const bool may_read = !has_started_ || has_begun_;
  if (is_reading_ || has_read_all_ || has_finished_ || !may_read) return;
  if (unwritten_.size() >= kMaxUnwritten) return;
  is_reading_ = true;
  StartRead(&incoming_);
}

void AttachStream::OnReadDone(bool ok) {
  loop_.post([stream = shared_from_this(), ok] {
    stream->is_reading_ = false;
    if (!ok) {
      stream->has_read_all_ = true;
      // Without a start there is nothing to wait for.
      if (!stream->has_started_)
        stream->end(to_status(Error(reason::kInvalidArgument, "the first message must be start")));
      return;
    }
    stream->take(stream->incoming_);
  });
}

void AttachStream::take(const grpc::ByteBuffer& message) {
  if (has_finished_) return;
  v1::AttachExecRequest request;
  grpc::ByteBuffer bytes = message;
  const bool is_valid =
      grpc::SerializationTraits<v1::AttachExecRequest>::Deserialize(&bytes, &request).ok();
  const Result<> handled =
      is_valid ? handle(std::move(request)) : invalid("the request is not an AttachExecRequest");
  if (!handled) return end(to_status(handled.error()));
  read_next();
}

Result<> AttachStream::check_writes(const char* field) const {
  if (writes_) return {};
  return invalid(std::string(field) + ": the client attached without start.write");
}

Result<> AttachStream::handle(v1::AttachExecRequest request) {
  if (request.has_start() == has_started_) {
    return invalid("the first message must be start, and no other one");
  }
  switch (request.message_case()) {
    case v1::AttachExecRequest::kStart:
      has_started_ = true;
      writes_ = request.start().write();
      exec_id_ = request.start().exec_id();
      control_.post(
          [stream = shared_from_this(), start = request.start()] { stream->find_exec(start); });
      return {};
    case v1::AttachExecRequest::kInput:
      AGBOX_TRY_VOID(check_writes("input"));
      if (request.input().size() > kMaxInputBytes) {
        return invalid("input: at most " + std::to_string(kMaxInputBytes) + " bytes, not " +
                       std::to_string(request.input().size()));
      }
      if (pipe_ && end_of_input_ != EndOfInput::NotSent)
        return invalid("input: the client has sent end_input before");
      if (pipe_) unwritten_ += request.input();
      flush_input();
      return {};
    case v1::AttachExecRequest::kEndInput:
      AGBOX_TRY_VOID(check_writes("end_input"));
      if (end_of_input_ == EndOfInput::NotSent) end_of_input_ = EndOfInput::Due;
      flush_input();
      return {};
    case v1::AttachExecRequest::kResize: {
      AGBOX_TRY_VOID(check_writes("resize"));
      AGBOX_TRY(size, parse_terminal_size("resize", request.resize()));
      if (!pipe_) return {};  // the size is that of the client that writes
      pass_on([id = exec_id_, size](Directory& directory) {
        return directory.resize_exec_terminal(id, size);
      });
      return {};
    }
    case v1::AttachExecRequest::kSignal: {
      const std::uint32_t number = request.signal();
      if (number < 1 || number > kMaxSignal) {
        return invalid("signal must be 1 to 64, not " + std::to_string(number));
      }
      pass_on([id = exec_id_, number](Directory& directory) {
        return directory.signal_exec(id, static_cast<int>(number));
      });
      return {};
    }
    case v1::AttachExecRequest::MESSAGE_NOT_SET:
      break;
  }
  return invalid("a message is empty, or of a later release");
}

// An exec that has ended is no error: its end is on its way to the client.
void AttachStream::pass_on(std::function<Result<>(Directory&)> call) {
  control_.post([stream = shared_from_this(), call = std::move(call)] {
    const auto done = call(stream->directory_);
    if (done || done.error().reason() == reason::kExecAlreadyTerminal) return;
    if (done.error().reason() != reason::kExecInputTaken) return stream->fail(done.error());
    stream->loop_.post([stream, why = done.error().message()] {
      stream->stop_input(v1::InputStopped::REASON_TAKEN_OVER, why);
    });
  });
}

// --- to the exec ---

void AttachStream::flush_input() {
  while (pipe_ && !unwritten_.empty()) {
    const ssize_t written = ::write(pipe_->native_handle(), unwritten_.data(), unwritten_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      if (std::exchange(waits_for_space_, true)) break;
      using Descriptor = boost::asio::posix::stream_descriptor;
      pipe_->async_wait(Descriptor::wait_write,
                        [weak = weak_from_this()](const boost::system::error_code& error) {
                          const auto stream = weak.lock();
                          if (!stream || error) return;
                          stream->waits_for_space_ = false;
                          stream->flush_input();
                        });
      break;
    }
    if (written <= 0) {
      stop_input(v1::InputStopped::REASON_CLOSED,
                 "exec " + exec_id_ + " takes no more input: the command does not read it");
      break;
    }
    accepted_ += static_cast<std::uint64_t>(written);
    unwritten_.erase(0, static_cast<std::size_t>(written));
  }
  if (pipe_ && unwritten_.empty() && end_of_input_ == EndOfInput::Due) {
    end_of_input_ = EndOfInput::PassedOn;
    pipe_.reset();
    pass_on([id = exec_id_, writer = writer_](Directory& directory) {
      return directory.end_exec_input(id, writer.get());
    });
  }
  read_next();
  write_more();
}

void AttachStream::stop_input(v1::InputStopped::Reason reason, const std::string& message) {
  pipe_.reset();
  std::string().swap(unwritten_);
  stopped_ = stopped_by(reason, message);
  read_next();
  write_more();
}

// --- to the client ---

void AttachStream::end(const grpc::Status& status) {
  if (!ends_with_) ends_with_ = status;
  write_more();
}

void AttachStream::write_more() {
  if (is_writing_ || is_informing_ || has_finished_) return;
  if (is_cancelled_) return finish(grpc::Status::CANCELLED);
  if (ends_with_) return finish(*ends_with_);
  if (!has_begun_) return;
  if (const auto response = next_response()) {
    outgoing_ = to_bytes(*response);
    is_writing_ = true;
    return StartWrite(&outgoing_);
  }
  if (ends_with_) return finish(*ends_with_);  // output that cannot be read
  if (has_sent_end_) return finish(grpc::Status::OK);
  if (is_over_ && readers_.empty()) find_end();
}

std::optional<v1::AttachExecResponse> AttachStream::next_response() {
  v1::AttachExecResponse response;
  if (attached_) {
    *response.mutable_attached() = std::move(*std::exchange(attached_, std::nullopt));
  } else if (accepted_ != reported_) {
    reported_ = accepted_;
    response.set_input_accepted(reported_);
  } else if (stopped_) {
    *response.mutable_input_stopped() = std::move(*std::exchange(stopped_, std::nullopt));
  } else if (take_output(response)) {
  } else if (ended_) {
    *response.mutable_ended() = std::move(*std::exchange(ended_, std::nullopt));
    has_sent_end_ = true;
  } else {
    return std::nullopt;
  }
  return response;
}

// In turn, so that one busy stream does not hide the other.
bool AttachStream::take_output(v1::AttachExecResponse& response) {
  for (std::size_t i = 0; i < readers_.size();) {
    Reader& reader = *readers_[next_reader_ % readers_.size()];
    auto next = reader.output.next();
    if (const auto* chunk = std::get_if<ExecOutput::Chunk>(&next)) {
      response.mutable_output()->set_stream(reader.stream);
      response.mutable_output()->set_offset(chunk->offset);
      response.mutable_output()->set_data(chunk->bytes.get(), chunk->size);
      ++next_reader_;
      return true;
    }
    if (const auto* end_of = std::get_if<ExecOutput::End>(&next)) {
      if (!end_of->outcome) {
        ends_with_ = to_status(end_of->outcome.error());
        return false;
      }
      readers_.erase(readers_.begin() +
                     static_cast<std::ptrdiff_t>(next_reader_ % readers_.size()));
      continue;
    }
    ++next_reader_;
    ++i;
  }
  return false;
}

void AttachStream::find_end() {
  if (std::exchange(asked_for_end_, true)) return;
  control_.post([stream = shared_from_this()] {
    stream->directory_.get_exec(stream->exec_id_, [stream](const Result<v1::ExecStatus>& exec) {
      if (!exec) return stream->fail(exec.error());
      stream->loop_.post([stream, status = *exec] {
        stream->ended_ = status;
        stream->write_more();
      });
    });
  });
}

// Never during a write: its completion comes here.
void AttachStream::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;
  on_end_.reset();
  writer_.reset();
  pipe_.reset();
  readers_.clear();
  Finish(status);
}

void AttachStream::OnWriteDone(bool ok) {
  loop_.post([stream = shared_from_this(), ok] {
    stream->is_writing_ = false;
    stream->is_cancelled_ |= !ok;
    stream->outgoing_.Clear();
    stream->write_more();
  });
}

void AttachStream::OnCancel() {
  loop_.post([stream = shared_from_this()] {
    stream->is_cancelled_ = true;
    stream->write_more();
  });
}

void AttachStream::OnDone() {
  // Its members belong to that thread.
  loop_.post([last = std::move(until_done_)] { last->streams_->remove(*last); });
}

}  // namespace agbox
