// SPDX-License-Identifier: Apache-2.0
// One SubscribeSandboxEvents call: a subscription's events, one write in flight. gRPC calls the
// On…() methods on its own threads, possibly at once; each only posts, and the rest runs on the
// control thread.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "agbox/v1/service.grpc.pb.h"
#include "control/control_loop.h"
#include "control/directory.h"

namespace agbox {

class EventStream final : public grpc::ServerWriteReactor<v1::SandboxEvent>,
                          public std::enable_shared_from_this<EventStream> {
 public:
  // Lives until gRPC is done with it.
  static EventStream* open(ControlLoop& loop, Directory& directory,
                           v1::SubscribeSandboxEventsRequest request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  explicit EventStream(ControlLoop& loop) : loop_(loop) {}
  void begin(Directory& directory, const v1::SubscribeSandboxEventsRequest& request);
  void write_next();
  void finish(const grpc::Status& status);

  ControlLoop& loop_;
  std::shared_ptr<EventSubscription> subscription_;
  v1::SandboxEvent message_;
  bool is_writing_ = false;
  bool has_finished_ = false;
  std::shared_ptr<EventStream> until_done_;
};

}  // namespace agbox
