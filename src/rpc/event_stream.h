// SPDX-License-Identifier: Apache-2.0
// One call that streams events: SubscribeSandboxEvents or SubscribeEvents. The control thread
// passes it events in batches; gRPC's threads write them one after another and ask for more, so
// that neither an event nor its reader costs the control thread an iteration of its own. Events are
// sent as the bytes on disk.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "agbox/v1/service.grpc.pb.h"
#include "control/all_events.h"
#include "control/control_loop.h"
#include "control/event_feed.h"
#include "rpc/open_streams.h"

namespace agbox {

template <class Subscription, class Request>
class EventStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                          public OpenStream,
                          public std::enable_shared_from_this<EventStream<Subscription, Request>> {
 public:
  // On the control thread. The function is the subscription's on_available.
  using Subscribe = std::function<Result<std::shared_ptr<Subscription>>(const Request& request,
                                                                        std::function<void()>)>;
  // Lives until gRPC calls OnDone().
  static EventStream* open(ControlLoop& loop, Subscribe subscribe,
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
  void begin(const Subscribe& subscribe, const Request& request);
  void write_more();
  void finish(const grpc::Status& status);
  // On the thread that owns the batch: the control thread until the first write, then gRPC's.
  void write_front();

  ControlLoop& loop_;
  std::shared_ptr<OpenStreams> streams_;  // the last streams may end after their service
  std::optional<grpc::Status> ends_with_;
  std::shared_ptr<Subscription> subscription_;
  bool is_writing_ = false;  // gRPC's threads own the batch
  bool is_cancelled_ = false;
  bool has_finished_ = false;
  std::shared_ptr<EventStream> until_done_;

  std::deque<typename Subscription::Item> batch_;
  grpc::ByteBuffer message_;
};

using SandboxEventStream = EventStream<EventSubscription, v1::SubscribeSandboxEventsRequest>;
using AllEventsStream = EventStream<AllEventsSubscription, v1::SubscribeEventsRequest>;
extern template class EventStream<EventSubscription, v1::SubscribeSandboxEventsRequest>;
extern template class EventStream<AllEventsSubscription, v1::SubscribeEventsRequest>;

}  // namespace agbox
