// SPDX-License-Identifier: Apache-2.0
// One ReadExecOutput call. The control thread provides the log's location and the end of its exec;
// the output thread reads it and passes one chunk at a time to gRPC, which sends it without a copy.
// A stalled client costs one chunk and does not affect its exec.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "execlog/exec_output.h"
#include "execlog/output_loop.h"
#include "model/exec/exec_output_source.h"
#include "rpc/open_streams.h"

namespace agbox {

class OutputStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                           public OpenStream,
                           public std::enable_shared_from_this<OutputStream> {
 public:
  // Called on the control thread, and replies there.
  using FindSource = std::function<void(const std::string& exec_id, OnExecEnd on_end,
                                        std::function<void(Result<ExecOutputSource>)> reply)>;

  // Lives until gRPC calls OnDone().
  static OutputStream* open(ControlLoop& control, OutputLoop& output, FindSource find,
                            std::shared_ptr<OpenStreams> streams, const grpc::ByteBuffer& request);

  // On the output thread.
  void end(const grpc::Status& status) override;

  // On gRPC's threads, OnCancel() possibly concurrently with the others.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  OutputStream(OutputLoop& loop, std::shared_ptr<OpenStreams> streams)
      : loop_(loop), streams_(std::move(streams)) {}
  // On the control thread.
  void find(const FindSource& find, v1::ReadExecOutputRequest request);
  void found(const v1::ReadExecOutputRequest& request, const Result<ExecOutputSource>& source);
  // On the output thread, like all that follows.
  void begin(ExecOutputCut cut, std::shared_ptr<const OnExecEnd> on_end);
  void exec_ended();
  void write_more();
  void finish(const grpc::Status& status);

  OutputLoop& loop_;
  std::shared_ptr<OpenStreams> streams_;  // the last streams may end after their service
  std::optional<grpc::Status> ends_with_;
  std::shared_ptr<const OnExecEnd> on_end_;  // shared with the exec, which calls it
  OutputLoop::Place place_;
  std::optional<ExecOutput> output_;
  bool is_writing_ = false;
  bool is_cancelled_ = false;
  bool has_finished_ = false;
  grpc::ByteBuffer message_;
  std::shared_ptr<OutputStream> until_done_;  // gRPC holds only our address
};

}  // namespace agbox
