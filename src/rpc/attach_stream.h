// SPDX-License-Identifier: Apache-2.0
// One AttachExec call. The control thread decides who writes to the exec's input and provides the
// location of its logs; the output thread reads them, and writes what the client sends into the
// pipe of the input. Everything is bounded: one message to the client at a time, and of its input a
// little more than it may send without waiting, so a command that reads slowly, or a client that
// does not read, costs no more than that and delays no one else.
#pragma once

#include <grpcpp/grpcpp.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agbox/v1/service.grpc.pb.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "control/directory.h"
#include "execlog/exec_output.h"
#include "execlog/output_loop.h"
#include "model/exec/exec_output_source.h"
#include "model/exec/input_writer.h"
#include "rpc/open_streams.h"

namespace agbox {

class AttachStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                           public OpenStream,
                           public std::enable_shared_from_this<AttachStream> {
 public:
  // Lives until gRPC calls OnDone().
  static AttachStream* open(ControlLoop& control, OutputLoop& output, Directory& directory,
                            std::shared_ptr<OpenStreams> streams);

  // On the output thread.
  void end(const grpc::Status& status) override;

  // On gRPC's threads, OnCancel() possibly concurrently with the others.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  AttachStream(ControlLoop& control, OutputLoop& loop, Directory& directory,
               std::shared_ptr<OpenStreams> streams)
      : control_(control), loop_(loop), directory_(directory), streams_(std::move(streams)) {}

  // On the control thread: one after the other, what begin() gets.
  struct Found {
    v1::ExecStatus exec{};
    ExecOutputSource source{};
    ExecInput input{};
    std::shared_ptr<const InputWriter> writer{};  // of `input`
    std::optional<v1::InputStopped> stopped{};
  };
  void find_exec(const v1::AttachStart& start);
  void find_output(v1::AttachStart start, v1::ExecStatus exec);
  void take_input(const v1::AttachStart& start, Found found);
  void fail(const Error& error);

  // On the output thread, like all that follows.
  void begin(const v1::AttachStart& start, Found found);
  Result<> begin_output(const v1::AttachStart& start, const ExecOutputSource& source);
  void exec_ended();

  // From the client.
  void read_next();
  void take(const grpc::ByteBuffer& message);
  Result<> handle(v1::AttachExecRequest request);
  Result<> check_writes(const char* field) const;
  void pass_on(std::function<Result<>(Directory&)> call);

  // To the exec.
  void flush_input();
  void stop_input(v1::InputStopped::Reason reason, const std::string& message);

  // To the client.
  void write_more();
  std::optional<v1::AttachExecResponse> next_response();
  bool take_output(v1::AttachExecResponse& response);
  void find_end();
  void finish(const grpc::Status& status);

  enum class EndOfInput { NotSent, Due, PassedOn };
  struct Reader {
    v1::OutputStream stream;
    OutputLoop::Place place;
    ExecOutput output;
  };

  ControlLoop& control_;
  OutputLoop& loop_;
  Directory& directory_;
  std::shared_ptr<OpenStreams> streams_;  // the last streams may end after their service
  std::string exec_id_;
  bool has_started_ = false;
  bool has_begun_ = false;
  bool is_over_ = false;                       // the exec has ended
  std::shared_ptr<const OnExecEnd> on_end_;    // shared with the exec, which calls it
  std::shared_ptr<const InputWriter> writer_;  // the same
  std::optional<boost::asio::posix::stream_descriptor> pipe_;
  bool writes_ = false;  // the client asked for it
  bool waits_for_space_ = false;
  EndOfInput end_of_input_ = EndOfInput::NotSent;
  std::string unwritten_;
  std::uint64_t accepted_ = 0;
  std::uint64_t reported_ = 0;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::size_t next_reader_ = 0;
  bool asked_for_end_ = false;
  std::optional<v1::Attached> attached_;
  std::optional<v1::InputStopped> stopped_;
  std::optional<v1::ExecStatus> ended_;
  bool has_sent_end_ = false;
  std::optional<grpc::Status> ends_with_;
  bool is_reading_ = false;
  bool has_read_all_ = false;
  bool is_writing_ = false;
  bool is_informing_ = false;
  bool is_cancelled_ = false;
  bool has_finished_ = false;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
  std::shared_ptr<AttachStream> until_done_;  // gRPC holds only our address
};

}  // namespace agbox
