// SPDX-License-Identifier: Apache-2.0
// One SubscribeSandboxEvents call. The control thread passes it events in batches; gRPC's threads
// write them one after another and ask for more, so that neither an event nor its reader costs the
// control thread an iteration of its own. Events are sent as the bytes on disk.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "control/control_loop.h"
#include "control/directory.h"
#include "rpc/open_streams.h"

namespace agbox {

class EventStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                          public OpenStream,
                          public std::enable_shared_from_this<EventStream> {
 public:
  // Lives until gRPC calls OnDone().
  static EventStream* open(ControlLoop& loop, Directory& directory,
                           std::shared_ptr<OpenStreams> streams, const grpc::ByteBuffer& request);

  void end(const grpc::Status& status) override;

  // On gRPC's threads, OnCancel() possibly concurrently with the others.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  EventStream(ControlLoop& loop, std::shared_ptr<OpenStreams> streams)
      : loop_(loop), streams_(std::move(streams)) {}
  // On the control thread.
  void begin(Directory& directory, const v1::SubscribeSandboxEventsRequest& request);
  void write_more();
  void finish(const grpc::Status& status);
  // On the thread that owns the batch: the control thread until the first write, then gRPC's.
  void write_front();

  ControlLoop& loop_;
  std::shared_ptr<OpenStreams> streams_;  // the last streams may end after their service
  std::optional<grpc::Status> ends_with_;
  std::shared_ptr<EventSubscription> subscription_;
  bool is_writing_ = false;  // gRPC's threads own the batch
  bool is_cancelled_ = false;
  bool has_finished_ = false;
  std::shared_ptr<EventStream> until_done_;

  std::deque<EventSubscription::Item> batch_;
  grpc::ByteBuffer message_;
};

}  // namespace agbox
