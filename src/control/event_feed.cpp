// SPDX-License-Identifier: Apache-2.0
#include "control/event_feed.h"

#include <utility>

#include "base/check.h"
#include "model/reasons.h"
#include "store/store.h"

namespace agbox {
namespace {

constexpr std::size_t kRecentEvents = 64;
constexpr std::size_t kPageEvents = 64;
constexpr std::size_t kHistoryPageBytes = std::size_t{64} << 10;

}  // namespace

PublishedEvents share(std::vector<StoredEvent> events) {
  PublishedEvents shared;
  for (StoredEvent& event : events) {
    shared.push_back(std::make_shared<const StoredEvent>(std::move(event)));
  }
  return shared;
}

void EventFeed::publish(const PublishedEvents& events) {
  AGBOX_ON_ITS_THREAD(thread_);
  for (const auto& stored : events) {
    AGBOX_CHECK(stored->event.sequence() == newest_ + 1, "events are published in order");
    newest_ = stored->event.sequence();
    // Cached only while there are followers: the store has the history.
    if (followers_.empty()) continue;
    recent_.push_back(stored);
    if (recent_.size() > kRecentEvents) recent_.pop_front();
  }
  wake_all();
}

void EventFeed::end() {
  AGBOX_ON_ITS_THREAD(thread_);
  has_ended_ = true;
  wake_all();
}

std::shared_ptr<const StoredEvent> EventFeed::recent(std::uint64_t sequence) const {
  AGBOX_ON_ITS_THREAD(thread_);
  if (recent_.empty() || sequence > newest_) return nullptr;
  const std::uint64_t oldest = recent_.front()->event.sequence();
  if (sequence < oldest) return nullptr;
  return recent_[sequence - oldest];
}

void EventFeed::forget_those_who_left() {
  followers_.forget_those_who_left();
  if (followers_.empty()) recent_.clear();
}

void EventFeed::wake_all() {
  followers_.for_each([](EventSubscription& follower) { follower.on_available_(); });
}

std::shared_ptr<EventSubscription> EventSubscription::open(std::shared_ptr<EventFeed> feed,
                                                           Store& store, std::uint64_t after,
                                                           std::optional<Snapshot> snapshot,
                                                           std::function<void()> on_available) {
  AGBOX_CHECK(after <= feed->newest(), "the anchor was checked");
  auto subscription = std::shared_ptr<EventSubscription>(new EventSubscription(
      std::move(feed), store, after, std::move(snapshot), std::move(on_available)));
  subscription->feed_->followers_.add(subscription);
  return subscription;
}

EventSubscription::EventSubscription(std::shared_ptr<EventFeed> feed, Store& store,
                                     std::uint64_t after, std::optional<Snapshot> snapshot,
                                     std::function<void()> on_available)
    : feed_(std::move(feed)),
      store_(store),
      cursor_(after),
      replay_until_(feed_->newest()),
      with_snapshot_(snapshot.has_value()),
      owes_snapshot_(with_snapshot_ && replay_until_ > 0),
      snapshot_(snapshot ? std::move(*snapshot) : Snapshot{}),
      on_available_(std::move(on_available)) {}

EventSubscription::~EventSubscription() {
  feed_->forget_those_who_left();
}

EventSubscription::Next EventSubscription::next() {
  AGBOX_ON_ITS_THREAD(feed_->thread_);
  if (owes_snapshot_) {
    auto event = event_after(replay_until_ - 1);
    if (event) {
      owes_snapshot_ = false;
      return Item{.event = std::move(event), .is_replay = true, .is_snapshot = true};
    }
  } else if (!snapshot_.empty()) {
    auto event = std::move(snapshot_.front());
    snapshot_.pop_front();
    return Item{.event = std::move(event), .is_replay = true, .is_snapshot = true};
  } else {
    if (with_snapshot_ && cursor_ + 1 == replay_until_) cursor_ = replay_until_;
    if (cursor_ < feed_->newest()) {
      if (auto event = event_after(cursor_)) {
        cursor_ = event->event.sequence();
        return Item{.event = std::move(event), .is_replay = cursor_ <= replay_until_};
      }
    } else if (feed_->has_ended()) {
      return End{Result<>{}};
    }
  }
  if (outcome_) return End{*outcome_};
  return Nothing{};
}

std::shared_ptr<const StoredEvent> EventSubscription::event_after(std::uint64_t sequence) {
  if (auto event = feed_->recent(sequence + 1)) return event;
  while (!page_.empty() && page_.front()->event.sequence() != sequence + 1) page_.pop_front();
  if (page_.empty()) {
    read_page(sequence);
    return nullptr;
  }
  auto event = std::move(page_.front());
  page_.pop_front();
  return event;
}

void EventSubscription::read_page(std::uint64_t after) {
  if (outcome_ || std::exchange(is_reading_, true)) return;
  auto done = [weak = weak_from_this(), after](Result<EventPage> page) {
    const auto self = weak.lock();
    if (!self) return;
    self->is_reading_ = false;
    if (page && page->events.empty()) {
      // Retrying would loop forever.
      self->outcome_ =
          fail(reason::kStoreFailed, "sandbox " + self->feed_->sandbox_id() +
                                         ": the store has no event after " + std::to_string(after) +
                                         "; the file may be damaged, see the log");
    } else if (page) {
      for (StoredEvent& event : page->events) {
        self->page_.push_back(std::make_shared<const StoredEvent>(std::move(event)));
      }
    } else if (page.error().reason() == reason::kSandboxNotFound) {
      self->outcome_ = Result<>{};  // purged before we had read all of it
    } else {
      self->outcome_ = std::unexpected(page.error());
    }
    self->on_available_();
  };
  store_.read_events(feed_->sandbox_id(), after, kPageEvents, kHistoryPageBytes, std::move(done));
}

}  // namespace agbox
