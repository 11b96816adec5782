// SPDX-License-Identifier: Apache-2.0
#include "control/all_events.h"

#include <utility>

#include "base/check.h"
#include "control/event_cursor.h"
#include "model/spec/request_checks.h"
#include "store/store.h"

namespace agbox {
namespace {

constexpr std::size_t kRecentOfAll = 256;
constexpr std::size_t kPageOfAll = 64;
constexpr std::size_t kPageOfAllBytes = std::size_t{64} << 10;
// A client whose filter passes nothing gets a cursor after so many events: what a resumption has to
// pass over again.
constexpr std::size_t kPassedOverBeforeCursor = 256;

}  // namespace

void AllEvents::restore(std::uint64_t newest_position) {
  AGBOX_ON_ITS_THREAD(thread_);
  newest_ = newest_position;
}

void AllEvents::add(const v1::SandboxHandle& sandbox) {
  AGBOX_ON_ITS_THREAD(thread_);
  sandboxes_.try_emplace(sandbox.sandbox_id(), &sandbox);
}

void AllEvents::remove(const v1::SandboxHandle& sandbox) {
  AGBOX_ON_ITS_THREAD(thread_);
  const auto found = sandboxes_.find(sandbox.sandbox_id());
  if (found != sandboxes_.end() && found->second == &sandbox) sandboxes_.erase(found);
}

void AllEvents::publish(const v1::SandboxHandle& sandbox, const PublishedEvents& events) {
  add(sandbox);
  for (const auto& event : events) {
    AGBOX_CHECK(event->position == newest_ + 1, "all events are published, in commit order");
    newest_ = event->position;
    // Cached only while there are followers: the store has the history.
    if (followers_.empty()) continue;
    recent_.push_back(event);
    if (recent_.size() > kRecentOfAll) recent_.pop_front();
  }
  followers_.for_each([](AllEventsSubscription& follower) { follower.on_available_(); });
}

std::shared_ptr<const StoredEvent> AllEvents::recent(std::uint64_t position) const {
  if (recent_.empty() || position > newest_) return nullptr;
  const std::uint64_t oldest = recent_.front()->position;
  if (position < oldest) return nullptr;
  return recent_[position - oldest];
}

// A sandbox whose record cannot be read has none, and neither has one that is purged.
const SandboxLabels& AllEvents::labels_of(const std::string& sandbox_id) const {
  const auto found = sandboxes_.find(sandbox_id);
  return found == sandboxes_.end() ? v1::SandboxHandle::default_instance().labels()
                                   : found->second->labels();
}

void AllEvents::forget_those_who_left() {
  followers_.forget_those_who_left();
  if (followers_.empty()) recent_.clear();
}

Result<std::shared_ptr<AllEventsSubscription>> AllEvents::subscribe(
    const v1::SubscribeEventsRequest& request, std::function<void()> on_available) {
  AGBOX_ON_ITS_THREAD(thread_);
  AGBOX_TRY(filter, SubscriptionFilter::parse(request));
  std::uint64_t after = 0;
  const bool has_cursor = request.from_case() == v1::SubscribeEventsRequest::kCursor;
  if (has_cursor) {
    AGBOX_TRY(position, parse_event_cursor(store_.instance_id(), newest_, request.cursor()));
    after = position;
  } else if (request.start() == v1::EVENTS_START_NOW) {
    after = newest_;
  } else if (request.start() != v1::EVENTS_START_OLDEST) {
    return invalid_argument(
        "start or cursor is required: EVENTS_START_NOW, EVENTS_START_OLDEST, or the cursor of an "
        "earlier response");
  }
  auto subscription = std::shared_ptr<AllEventsSubscription>(new AllEventsSubscription(
      shared_from_this(), after, std::move(filter), has_cursor, std::move(on_available)));
  followers_.add(subscription);
  return subscription;
}

AllEventsSubscription::AllEventsSubscription(std::shared_ptr<AllEvents> feed, std::uint64_t after,
                                             SubscriptionFilter filter, bool reports_old_gaps,
                                             std::function<void()> on_available)
    : feed_(std::move(feed)),
      cursor_(after),
      replay_until_(feed_->newest_),
      filter_(std::move(filter)),
      reports_old_gaps_(reports_old_gaps),
      on_available_(std::move(on_available)) {}

AllEventsSubscription::~AllEventsSubscription() {
  feed_->forget_those_who_left();
}

AllEventsSubscription::Next AllEventsSubscription::next() {
  AGBOX_ON_ITS_THREAD(feed_->thread_);
  while (true) {
    if (owes_caught_up_ && cursor_ >= replay_until_) {
      owes_caught_up_ = false;
      Item caught_up = item();
      caught_up.has_caught_up = true;
      return caught_up;
    }
    if (cursor_ >= feed_->newest_) return Nothing{};
    auto event = advance();
    if (!event && failure_) return End{std::unexpected(*failure_)};
    if (!event) return Nothing{};
    if (!*event) continue;
    const v1::SandboxEvent& content = (*event)->event;
    if (filter_.passes(content, feed_->labels_of(content.sandbox_id()))) {
      return item(std::move(*event));
    }
    if (++passed_over_ == kPassedOverBeforeCursor) return item();
  }
}

AllEventsSubscription::Item AllEventsSubscription::item(std::shared_ptr<const StoredEvent> event) {
  passed_over_ = 0;
  const bool is_replay = event && cursor_ <= replay_until_;
  return {.cursor = event_cursor(feed_->store_.instance_id(), cursor_),
          .event = std::move(event),
          .is_replay = is_replay,
          .follows_gap = std::exchange(has_gap_, false)};
}

void AllEventsSubscription::move_to(std::uint64_t position, bool has_event) {
  const bool is_gap = !has_event || position != cursor_ + 1;
  // A reader of the oldest events that are kept does not miss those that were purged before.
  if (is_gap && (reports_old_gaps_ || cursor_ >= replay_until_)) has_gap_ = true;
  cursor_ = position;
}

std::optional<std::shared_ptr<const StoredEvent>> AllEventsSubscription::advance() {
  auto event = feed_->recent(cursor_ + 1);
  while (!event && !page_.empty()) {
    if (page_.front()->position > cursor_) event = std::move(page_.front());
    page_.pop_front();
  }
  if (event) {
    move_to(event->position, true);
    return event;
  }
  if (page_end_ > cursor_) {
    move_to(page_end_, false);
    return nullptr;
  }
  read_page();
  return std::nullopt;
}

void AllEventsSubscription::read_page() {
  if (failure_ || std::exchange(is_reading_, true)) return;
  auto done = [weak = weak_from_this()](Result<AllEventsPage> page) {
    const auto self = weak.lock();
    if (!self) return;
    self->is_reading_ = false;
    if (page) {
      for (StoredEvent& event : page->events) {
        self->page_.push_back(std::make_shared<const StoredEvent>(std::move(event)));
      }
      self->page_end_ = page->last;
      for (const std::string& why : page->unreadable) {
        self->feed_->log_.error("stored event cannot be read, not sent", {{"error", why}});
      }
    } else {
      self->failure_ = page.error();
    }
    self->on_available_();
  };
  // Not beyond the newest that is published: the reader may be ahead of what this thread shows.
  feed_->store_.read_all_events(cursor_, feed_->newest_, kPageOfAll, kPageOfAllBytes,
                                std::move(done));
}

}  // namespace agbox
