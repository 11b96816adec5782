// SPDX-License-Identifier: Apache-2.0
#include "rpc/event_stream.h"

#include <string_view>
#include <utility>
#include <vector>

#include "rpc/status.h"

namespace agbox {
namespace {

// Amortizes the hand-over; a stalled reader holds no more than these.
constexpr std::size_t kBatchEvents = 64;

// A stored event has neither flag, and protobuf fields may be appended in any order.
constexpr std::string_view kReplay = "\x30\x01";    // replay (6) = true
constexpr std::string_view kSnapshot = "\x38\x01";  // snapshot (7) = true

grpc::ByteBuffer to_buffer(const EventSubscription::Item& item) {
  std::vector<grpc::Slice> slices{grpc::Slice(item.event->bytes)};
  if (item.is_replay) slices.emplace_back(kReplay.data(), kReplay.size());
  if (item.is_snapshot) slices.emplace_back(kSnapshot.data(), kSnapshot.size());
  return {slices.data(), slices.size()};
}

}  // namespace

EventStream* EventStream::open(ControlLoop& loop, Directory& directory,
                               std::shared_ptr<OpenStreams> streams,
                               const grpc::ByteBuffer& request) {
  auto stream = std::shared_ptr<EventStream>(new EventStream(loop, std::move(streams)));
  stream->until_done_ = stream;
  v1::SubscribeSandboxEventsRequest parsed;
  grpc::ByteBuffer bytes = request;
  const grpc::Status status =
      grpc::SerializationTraits<v1::SubscribeSandboxEventsRequest>::Deserialize(&bytes, &parsed);
  loop.post([stream, &directory, is_valid = status.ok(), parsed = std::move(parsed)] {
    if (is_valid) return stream->begin(directory, parsed);
    stream->finish(to_status(
        {reason::kInvalidArgument, "the request is not a SubscribeSandboxEventsRequest"}));
  });
  return stream.get();
}

void EventStream::begin(Directory& directory, const v1::SubscribeSandboxEventsRequest& request) {
  streams_->add(*this);
  if (has_finished_) return;
  auto on_available = [weak = weak_from_this()] {
    if (const auto stream = weak.lock()) stream->write_more();
  };
  auto subscription = directory.subscribe(request, std::move(on_available));
  if (!subscription) return finish(to_status(subscription.error()));
  subscription_ = std::move(*subscription);
  StartSendInitialMetadata();  // confirms the subscription to the client
  write_more();
}

void EventStream::end(const grpc::Status& status) {
  ends_with_ = status;
  write_more();
}

void EventStream::write_more() {
  if (is_writing_ || has_finished_) return;
  if (is_cancelled_) return finish(grpc::Status::CANCELLED);
  if (ends_with_) return finish(*ends_with_);
  while (batch_.size() < kBatchEvents) {
    auto next = subscription_->next();
    if (auto* item = std::get_if<EventSubscription::Item>(&next)) {
      batch_.push_back(std::move(*item));
      continue;
    }
    const auto* end = std::get_if<EventSubscription::End>(&next);
    if (end != nullptr && batch_.empty()) {
      return finish(end->outcome ? grpc::Status::OK : to_status(end->outcome.error()));
    }
    break;  // an end is returned again once the batch is sent
  }
  if (batch_.empty()) return;
  is_writing_ = true;
  write_front();
}

void EventStream::write_front() {
  message_ = to_buffer(batch_.front());
  batch_.pop_front();
  grpc::WriteOptions options;
  if (!batch_.empty()) options.set_buffer_hint();  // the next one follows immediately
  StartWrite(&message_, options);
}

// Never during a write: its completion comes here.
void EventStream::finish(const grpc::Status& status) {
  if (std::exchange(has_finished_, true)) return;
  subscription_.reset();
  Finish(status);
}

void EventStream::OnWriteDone(bool ok) {
  if (ok && !batch_.empty()) return write_front();
  loop_.post([stream = shared_from_this(), ok] {
    stream->is_writing_ = false;
    stream->is_cancelled_ |= !ok;
    stream->batch_.clear();
    stream->write_more();
  });
}

void EventStream::OnCancel() {
  loop_.post([stream = shared_from_this()] {
    stream->is_cancelled_ = true;
    stream->write_more();
  });
}

void EventStream::OnDone() {
  loop_.post([stream = shared_from_this()] {
    stream->streams_->remove(*stream);
    stream->until_done_.reset();
  });
}

}  // namespace agbox
