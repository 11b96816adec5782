// SPDX-License-Identifier: Apache-2.0
#include "rpc/event_stream.h"

#include <utility>

#include "base/overloaded.h"
#include "rpc/status.h"

namespace agbox {

EventStream* EventStream::open(ControlLoop& loop, Directory& directory,
                               v1::SubscribeSandboxEventsRequest request) {
  auto stream = std::shared_ptr<EventStream>(new EventStream(loop));
  stream->until_done_ = stream;
  loop.post(
      [stream, &directory, request = std::move(request)] { stream->begin(directory, request); });
  return stream.get();
}

void EventStream::begin(Directory& directory, const v1::SubscribeSandboxEventsRequest& request) {
  auto on_news = [weak = weak_from_this()] {
    if (const auto stream = weak.lock()) stream->write_next();
  };
  auto subscription = directory.subscribe(request, std::move(on_news));
  if (!subscription) return finish(to_status(subscription.error()));
  subscription_ = std::move(*subscription);
  StartSendInitialMetadata();  // the client knows now that it is subscribed
  write_next();
}

void EventStream::write_next() {
  if (is_writing_ || has_finished_) return;
  std::visit(Overloaded{
                 [this](const EventSubscription::Item& item) {
                   message_ = item.event->event;
                   message_.set_replay(item.is_replay);
                   message_.set_snapshot(item.is_snapshot);
                   is_writing_ = true;
                   StartWrite(&message_);
                 },
                 [](const EventSubscription::Nothing&) {},
                 [this](const EventSubscription::End& end) {
                   finish(end.outcome ? grpc::Status::OK : to_status(end.outcome.error()));
                 },
             },
             subscription_->next());
}

void EventStream::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;  // Finish exactly once
  subscription_.reset();
  Finish(status);
}

void EventStream::OnWriteDone(bool ok) {
  loop_.post([stream = shared_from_this(), ok] {
    stream->is_writing_ = false;
    if (!ok) return stream->finish(grpc::Status::CANCELLED);
    stream->write_next();
  });
}

void EventStream::OnCancel() {
  loop_.post([stream = shared_from_this()] { stream->finish(grpc::Status::CANCELLED); });
}

void EventStream::OnDone() {
  loop_.post([stream = shared_from_this()] { stream->until_done_.reset(); });
}

}  // namespace agbox
