// SPDX-License-Identifier: Apache-2.0
#include "rpc/event_stream.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "rpc/status.h"

namespace agbox {
namespace {

// Amortizes the hand-over; a stalled reader holds no more than these.
constexpr std::size_t kBatchEvents = 64;

// Of SandboxEvent. A stored event has neither flag, and protobuf fields may be appended in any
// order.
constexpr std::string_view kReplay = "\x30\x01";    // replay (6) = true
constexpr std::string_view kSnapshot = "\x38\x01";  // snapshot (7) = true

// Of SubscribeEventsResponse.
constexpr char kCursorTag = '\x0a';                      // cursor (1)
constexpr char kEventTag = '\x12';                       // event (2)
constexpr std::string_view kCaughtUp = "\x18\x01";       // caught_up (3) = true
constexpr std::string_view kEventsMissing = "\x20\x01";  // events_missing (4) = true

void append_length(std::string& out, std::size_t length) {
  for (; length >= 0x80; length >>= 7U) out += static_cast<char>((length & 0x7FU) | 0x80U);
  out += static_cast<char>(length);
}

grpc::ByteBuffer to_buffer(const EventSubscription::Item& item) {
  std::vector<grpc::Slice> slices{grpc::Slice(item.event->bytes)};
  if (item.is_replay) slices.emplace_back(kReplay.data(), kReplay.size());
  if (item.is_snapshot) slices.emplace_back(kSnapshot.data(), kSnapshot.size());
  return {slices.data(), slices.size()};
}

grpc::ByteBuffer to_buffer(const AllEventsSubscription::Item& item) {
  std::string head(1, kCursorTag);
  append_length(head, item.cursor.size());
  head += item.cursor;
  if (item.has_caught_up) head += kCaughtUp;
  if (item.follows_gap) head += kEventsMissing;
  if (!item.event) {
    const grpc::Slice only(head);
    return {&only, 1};
  }
  const std::string_view replay = item.is_replay ? kReplay : std::string_view();
  head += kEventTag;
  append_length(head, item.event->bytes.size() + replay.size());
  std::vector<grpc::Slice> slices{grpc::Slice(head), grpc::Slice(item.event->bytes)};
  if (!replay.empty()) slices.emplace_back(replay.data(), replay.size());
  return {slices.data(), slices.size()};
}

}  // namespace

template <class Subscription, class Request>
EventStream<Subscription, Request>* EventStream<Subscription, Request>::open(
    ControlLoop& loop, Subscribe subscribe, std::shared_ptr<OpenStreams> streams,
    const grpc::ByteBuffer& request) {
  auto stream = std::shared_ptr<EventStream>(new EventStream(loop, std::move(streams)));
  stream->until_done_ = stream;
  Request parsed;
  grpc::ByteBuffer bytes = request;
  const grpc::Status status = grpc::SerializationTraits<Request>::Deserialize(&bytes, &parsed);
  loop.post([stream, subscribe = std::move(subscribe), is_valid = status.ok(),
             parsed = std::move(parsed)] {
    if (is_valid) return stream->begin(subscribe, parsed);
    stream->finish(to_status(
        {reason::kInvalidArgument, "the request is not a " + Request::descriptor()->name()}));
  });
  return stream.get();
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::begin(const Subscribe& subscribe, const Request& request) {
  if (streams_->size() >= maxima::kEventStreams) {
    return finish(
        to_status({reason::kResourceExhausted,
                   "subscriptions to events: at most " + std::to_string(maxima::kEventStreams) +
                       " are possible; wait until some of them end, or follow all "
                       "sandboxes with SubscribeEvents"}));
  }
  streams_->add(*this);
  if (has_finished_) return;
  auto on_available = [weak = this->weak_from_this()] {
    if (const auto stream = weak.lock()) stream->write_more();
  };
  auto subscription = subscribe(request, std::move(on_available));
  if (!subscription) return finish(to_status(subscription.error()));
  subscription_ = std::move(*subscription);
  StartSendInitialMetadata();  // confirms the subscription to the client
  write_more();
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::end(const grpc::Status& status) {
  ends_with_ = status;
  write_more();
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::write_more() {
  if (is_writing_ || has_finished_) return;
  if (is_cancelled_) return finish(grpc::Status::CANCELLED);
  if (ends_with_) return finish(*ends_with_);
  while (batch_.size() < kBatchEvents) {
    auto next = subscription_->next();
    if (auto* item = std::get_if<typename Subscription::Item>(&next)) {
      batch_.push_back(std::move(*item));
      continue;
    }
    const auto* end = std::get_if<typename Subscription::End>(&next);
    if (end != nullptr && batch_.empty()) {
      return finish(end->outcome ? grpc::Status::OK : to_status(end->outcome.error()));
    }
    break;  // an end is returned again once the batch is sent
  }
  if (batch_.empty()) return;
  is_writing_ = true;
  write_front();
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::write_front() {
  message_ = to_buffer(batch_.front());
  batch_.pop_front();
  grpc::WriteOptions options;
  if (!batch_.empty()) options.set_buffer_hint();  // the next one follows immediately
  StartWrite(&message_, options);
}

// Never during a write: its completion comes here.
template <class Subscription, class Request>
void EventStream<Subscription, Request>::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;
  subscription_.reset();
  Finish(status);
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::OnWriteDone(bool ok) {
  if (ok && !batch_.empty()) return write_front();
  loop_.post([stream = this->shared_from_this(), ok] {
    stream->is_writing_ = false;
    stream->is_cancelled_ |= !ok;
    stream->batch_.clear();
    stream->write_more();
  });
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::OnCancel() {
  loop_.post([stream = this->shared_from_this()] {
    stream->is_cancelled_ = true;
    stream->write_more();
  });
}

template <class Subscription, class Request>
void EventStream<Subscription, Request>::OnDone() {
  loop_.post([stream = this->shared_from_this()] {
    stream->streams_->remove(*stream);
    stream->until_done_.reset();
  });
}

template class EventStream<EventSubscription, v1::SubscribeSandboxEventsRequest>;
template class EventStream<AllEventsSubscription, v1::SubscribeEventsRequest>;

}  // namespace agbox
