// SPDX-License-Identifier: Apache-2.0
// The committed events of one sandbox and their followers. A follower is a cursor: it takes the
// next event when it is ready for it, from the few newest that are cached here or, if it lags
// further, in pages from the store. A slow follower costs one page, never a queue, and does not
// delay others.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/thread_checker.h"
#include "control/followers.h"
#include "store/records.h"

namespace agbox {

class Store;
class EventSubscription;

// Events that are on disk, as all feeds share them.
using PublishedEvents = std::vector<std::shared_ptr<const StoredEvent>>;
PublishedEvents share(std::vector<StoredEvent> events);

class EventFeed {
 public:
  EventFeed(std::string sandbox_id, std::uint64_t newest_sequence)
      : sandbox_id_(std::move(sandbox_id)), newest_(newest_sequence) {}

  const std::string& sandbox_id() const { return sandbox_id_; }
  std::uint64_t newest() const { return newest_; }

  // The events are on disk, and the sandbox's published state already reflects them.
  void publish(const PublishedEvents& events);
  // The history is purged: all subscriptions end.
  void end();

  // The event, if it is among the newest cached here; otherwise nullptr.
  std::shared_ptr<const StoredEvent> recent(std::uint64_t sequence) const;
  bool has_ended() const { return has_ended_; }
  std::size_t followers() const { return followers_.size(); }

 private:
  friend class EventSubscription;
  void wake_all();
  void forget_those_who_left();

  ThreadChecker thread_;
  std::string sandbox_id_;
  std::uint64_t newest_;
  bool has_ended_ = false;
  std::deque<std::shared_ptr<const StoredEvent>> recent_;  // consecutive, up to newest_
  Followers<EventSubscription> followers_;
};

class EventSubscription : public std::enable_shared_from_this<EventSubscription> {
 public:
  struct Item {
    std::shared_ptr<const StoredEvent> event;
    bool is_replay = false;
    bool is_snapshot = false;
  };
  struct Nothing {};  // yet: on_available will be called
  struct End {
    Result<> outcome;
  };
  using Next = std::variant<Item, Nothing, End>;

  // The current state, as events that are not stored.
  using Snapshot = std::deque<std::shared_ptr<const StoredEvent>>;

  // Follows from `after`, which must not be beyond the newest event. With a snapshot the newest
  // stored event comes first, and is not repeated; then the snapshot. `on_available` is called, on
  // the control thread, when next() may have an event again after it returned Nothing.
  static std::shared_ptr<EventSubscription> open(std::shared_ptr<EventFeed> feed, Store& store,
                                                 std::uint64_t after,
                                                 std::optional<Snapshot> snapshot,
                                                 std::function<void()> on_available);

  EventSubscription(const EventSubscription&) = delete;
  ~EventSubscription();

  Next next();

 private:
  EventSubscription(std::shared_ptr<EventFeed> feed, Store& store, std::uint64_t after,
                    std::optional<Snapshot> snapshot, std::function<void()> on_available);
  friend class EventFeed;
  // The event after `sequence`; nullptr if it has to be read first, which this call then begins.
  std::shared_ptr<const StoredEvent> event_after(std::uint64_t sequence);
  void read_page(std::uint64_t after);

  std::shared_ptr<EventFeed> feed_;
  Store& store_;
  std::uint64_t cursor_;
  const std::uint64_t replay_until_;  // stored before the subscription began
  const bool with_snapshot_;
  bool owes_snapshot_;
  Snapshot snapshot_;
  std::deque<std::shared_ptr<const StoredEvent>> page_;
  bool is_reading_ = false;
  std::optional<Result<>> outcome_;
  std::function<void()> on_available_;
};

}  // namespace agbox
