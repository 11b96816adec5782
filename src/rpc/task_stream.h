// SPDX-License-Identifier: Apache-2.0
// A call whose responses a task of the control thread produces, one at a time: the next one when
// gRPC has sent the last. A client that goes away cancels the task.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "async/event.h"
#include "async/task_group.h"
#include "base/result.h"
#include "control/control_loop.h"
#include "rpc/open_streams.h"

namespace agbox {

class TaskStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                         public OpenStream,
                         public std::enable_shared_from_this<TaskStream> {
 public:
  // Returns when the response is sent; false if the client is gone.
  using Write = std::function<asio::awaitable<bool>(grpc::ByteBuffer response)>;
  // Called on the control thread. The task calls `done` at its end.
  using Start = std::function<Task(Write write, std::function<void(Result<>)> done)>;

  // Lives until gRPC calls OnDone(). An error instead of `start` is the answer.
  static TaskStream* open(ControlLoop& loop, std::shared_ptr<OpenStreams> streams,
                          Result<Start> start);

  // On the control thread.
  void end(const grpc::Status& status) override;

  // On gRPC's threads, OnCancel() possibly concurrently with the others.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  TaskStream(ControlLoop& loop, std::shared_ptr<OpenStreams> streams)
      : loop_(loop), streams_(std::move(streams)), is_written_(loop.io().get_executor()) {}
  // On the control thread, like all that follows.
  void begin(const Start& start);
  asio::awaitable<bool> write(grpc::ByteBuffer response);
  void cancel();
  void finish(const grpc::Status& status);

  ControlLoop& loop_;
  std::shared_ptr<OpenStreams> streams_;  // the last streams may end after their service
  std::optional<Task> task_;
  Event is_written_;
  bool is_writing_ = false;
  bool is_cancelled_ = false;
  bool has_finished_ = false;
  std::optional<grpc::Status> ends_with_;  // regardless of how the task ends
  std::optional<grpc::Status> outcome_;    // when the write in progress is done
  grpc::ByteBuffer message_;
  std::shared_ptr<TaskStream> until_done_;  // gRPC holds only our address
};

}  // namespace agbox
