// SPDX-License-Identifier: Apache-2.0
// The committed events of all sandboxes in the order of their commits, and their followers. As in
// EventFeed a follower is a cursor: it takes the next event when it is ready for it, from the
// newest that are cached here or in pages from the store.
//
// The cursor is the position that the store gave the event. Positions are never reused, and have
// gaps only where a history was purged.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agbox/v1/sandbox.pb.h"
#include "agbox/v1/service.pb.h"
#include "base/log.h"
#include "base/result.h"
#include "base/thread_checker.h"
#include "control/event_feed.h"
#include "control/followers.h"
#include "model/sandbox/subscription_filter.h"
#include "store/records.h"

namespace agbox {

class Store;
class AllEventsSubscription;

class AllEvents : public std::enable_shared_from_this<AllEvents> {
 public:
  AllEvents(Store& store, Logger log) : store_(store), log_(std::move(log)) {}

  // The newest position when the store was loaded; before anything else.
  void restore(std::uint64_t newest_position);

  // A sandbox with stored events, whose labels the filters need. It has to outlive its entry.
  void add(const v1::SandboxHandle& sandbox);
  // Nothing if another sandbox object has the entry: one whose ID turned out to be taken.
  void remove(const v1::SandboxHandle& sandbox);

  // The events are on disk, and the sandbox's published state already reflects them. All events of
  // the store come here, in the order of their commits.
  void publish(const v1::SandboxHandle& sandbox, const PublishedEvents& events);

  // `on_available` is called, on the control thread, when next() may have an item again after it
  // returned Nothing.
  Result<std::shared_ptr<AllEventsSubscription>> subscribe(
      const v1::SubscribeEventsRequest& request, std::function<void()> on_available);

  std::uint64_t newest() const { return newest_; }
  std::size_t cached() const { return recent_.size(); }

 private:
  friend class AllEventsSubscription;
  std::shared_ptr<const StoredEvent> recent(std::uint64_t position) const;
  const SandboxLabels& labels_of(const std::string& sandbox_id) const;
  void forget_those_who_left();

  ThreadChecker thread_;
  Store& store_;
  Logger log_;
  std::uint64_t newest_ = 0;
  std::map<std::string, const v1::SandboxHandle*, std::less<>> sandboxes_;
  std::deque<std::shared_ptr<const StoredEvent>> recent_;  // consecutive, up to newest_
  Followers<AllEventsSubscription> followers_;
};

class AllEventsSubscription : public std::enable_shared_from_this<AllEventsSubscription> {
 public:
  struct Item {
    std::string cursor;
    std::shared_ptr<const StoredEvent> event{};  // nullptr: only advances the cursor
    bool is_replay = false;
    bool has_caught_up = false;
    bool follows_gap = false;  // events before it were purged
  };
  struct Nothing {};  // yet: on_available will be called
  struct End {
    Result<> outcome;
  };
  using Next = std::variant<Item, Nothing, End>;

  AllEventsSubscription(const AllEventsSubscription&) = delete;
  ~AllEventsSubscription();

  Next next();
  // Of the last event that it has passed.
  std::uint64_t position() const { return cursor_; }

 private:
  friend class AllEvents;
  AllEventsSubscription(std::shared_ptr<AllEvents> feed, std::uint64_t after,
                        SubscriptionFilter filter, bool reports_old_gaps,
                        std::function<void()> on_available);
  Item item(std::shared_ptr<const StoredEvent> event = nullptr);
  void move_to(std::uint64_t position, bool has_event);
  // Moves the cursor behind the next event and returns it, or nullptr if there was none at that
  // position; nullopt if it has to be read first, which this call then begins.
  std::optional<std::shared_ptr<const StoredEvent>> advance();
  void read_page();

  std::shared_ptr<AllEvents> feed_;  // streams may outlive the control plane
  std::uint64_t cursor_;
  const std::uint64_t replay_until_;  // stored before the subscription began
  const SubscriptionFilter filter_;
  bool owes_caught_up_ = true;
  const bool reports_old_gaps_;
  bool has_gap_ = false;         // since the last item
  std::size_t passed_over_ = 0;  // events since the last item
  std::deque<std::shared_ptr<const StoredEvent>> page_;
  std::uint64_t page_end_ = 0;  // the page has all events up to this position
  bool is_reading_ = false;
  std::optional<Error> failure_;
  std::function<void()> on_available_;
};

}  // namespace agbox
