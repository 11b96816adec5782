// SPDX-License-Identifier: Apache-2.0
// Followers of one sandbox's events: early, late, slow, and gone in the wrong moment.
#include "control/event_feed.h"

#include "model/reasons.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;

class EventFeedTest : public ControlTest {
 protected:
  static constexpr const char* kId = "feed-1";

  EventFeedTest() { start(); }

  // A history of its own, whose events nothing else adds to.
  void make_history(int length) {
    v1::CreateSpec wanted;
    wanted.set_image("busybox");
    append({change::CreateSandbox{.sandbox_id = kId,
                                  .created_at = clock_.wall_now(),
                                  .status = {.state = v1::SANDBOX_STATE_PENDING,
                                             .changed_at = clock_.wall_now(),
                                             .error_code = {},
                                             .error_message = {}},
                                  .operation = {},
                                  .spec = wanted,
                                  .created_with = {}}});
    feed_ = std::make_shared<EventFeed>(kId, 0);
    publish(length);
  }
  void publish(int count) {
    std::vector<Mutation> mutations;
    for (int i = 0; i < count; ++i) {
      v1::SandboxEvent event;
      event.set_sandbox_id(kId);
      event.set_event_type(v1::SANDBOX_PREPARING);
      mutations.emplace_back(change::AppendEvent{event});
    }
    feed_->publish(share(append(std::move(mutations)).events));
  }
  Committed append(std::vector<Mutation> mutations) {
    std::optional<Committed> committed;
    store().append({.mutations = std::move(mutations), .urgency = Urgency::GoesOn},
                   [&](Result<Committed> result) { committed = std::move(*result); });
    run_until([&] { return committed.has_value(); });
    return std::move(*committed);
  }

  struct Follower {
    std::shared_ptr<EventSubscription> subscription;
    std::vector<std::string> seen;
    bool has_ended = false;
    int woken = 0;
  };
  std::unique_ptr<Follower> follow(std::uint64_t after, bool with_snapshot = false) {
    auto follower = std::make_unique<Follower>();
    std::optional<EventSubscription::Snapshot> snapshot;
    if (with_snapshot) snapshot.emplace();
    follower->subscription = EventSubscription::open(feed_, store(), after, std::move(snapshot),
                                                     [raw = follower.get()] { ++raw->woken; });
    return follower;
  }
  static void take_all(Follower& follower) {
    while (true) {
      const auto next = follower.subscription->next();
      if (std::holds_alternative<EventSubscription::End>(next)) follower.has_ended = true;
      const auto* item = std::get_if<EventSubscription::Item>(&next);
      if (item == nullptr) return;
      follower.seen.push_back(std::to_string(item->event->event.sequence()) +
                              (item->is_snapshot ? "s" : "") + (item->is_replay ? "r" : ""));
    }
  }
  void take_until(Follower& follower, std::size_t count) {
    run_until([&] {
      take_all(follower);
      return follower.seen.size() >= count;
    });
  }

  std::shared_ptr<EventFeed> feed_;
};

// L32: replay says whether it was stored before the subscription began.
TEST_F(EventFeedTest, ReplaysFromEveryPlaceThenFollows) {
  make_history(4);
  std::vector<std::unique_ptr<Follower>> followers;
  for (std::uint64_t after = 0; after <= 4; ++after) followers.push_back(follow(after));
  publish(2);
  const std::vector<std::string> all = {"1r", "2r", "3r", "4r", "5", "6"};
  for (std::size_t after = 0; after <= 4; ++after) {
    take_until(*followers[after], 6 - after);
    EXPECT_EQ(followers[after]->seen,
              std::vector<std::string>(all.begin() + static_cast<int>(after), all.end()));
  }
}

TEST_F(EventFeedTest, ASnapshotIsTheNewestFirstAndNotTwice) {
  make_history(4);
  const auto from_start = follow(0, true);
  const auto from_newest = follow(4, true);
  const auto from_middle = follow(2, true);
  take_until(*from_start, 4);
  take_until(*from_newest, 1);
  take_until(*from_middle, 2);
  publish(1);
  take_until(*from_start, 5);
  take_until(*from_newest, 2);
  take_until(*from_middle, 3);
  EXPECT_THAT(from_start->seen, ElementsAre("4sr", "1r", "2r", "3r", "5"));
  EXPECT_THAT(from_newest->seen, ElementsAre("4sr", "5"));
  EXPECT_THAT(from_middle->seen, ElementsAre("4sr", "3r", "5"));
}

TEST_F(EventFeedTest, AnAnchorBeyondTheNewestIsOutOfRange) {
  create_ready("anchor-1");
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id("anchor-1");
  request.set_from_sequence(4);
  const auto refused = directory().subscribe(request, [] {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kSandboxEventSequenceExpired);
  EXPECT_EQ(refused.error().message(),
            "sandbox anchor-1 event sequence 4 is outside retained history");
  EXPECT_EQ(refused.error().metadata().at("from_sequence"), "4");
}

// P4, P9: whoever stands still costs nothing, and the history is on the disk.
TEST_F(EventFeedTest, AStalledFollowerSlowsNobodyAndCostsAFewEvents) {
  make_history(1);
  const auto stalled = follow(0);
  const auto quick = follow(0);
  for (std::size_t round = 1; round <= 20; ++round) {
    publish(50);
    take_until(*quick, 1 + 50 * round);
  }
  std::size_t kept = 0;
  for (std::uint64_t sequence = 1; sequence <= feed_->newest(); ++sequence) {
    if (feed_->recent(sequence)) ++kept;
  }
  EXPECT_EQ(kept, 64U);
  take_until(*stalled, 1001);
  EXPECT_EQ(stalled->seen.size(), quick->seen.size());
  EXPECT_EQ(stalled->seen.back(), "1001");
}

TEST_F(EventFeedTest, WithoutFollowersNothingIsKept) {
  make_history(1);
  auto follower = follow(0);
  publish(10);
  EXPECT_NE(feed_->recent(11), nullptr);
  follower.reset();
  EXPECT_EQ(feed_->recent(11), nullptr);
  publish(1);
  EXPECT_EQ(feed_->recent(12), nullptr);
}

TEST_F(EventFeedTest, FollowersWhoComeAndGoLeaveNothing) {
  make_history(1);
  std::weak_ptr<EventSubscription> gone = follow(1)->subscription;
  for (int i = 0; i < 1000; ++i) follow(1);
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(feed_->followers(), 0U);
}

TEST_F(EventFeedTest, AFollowerMayLeaveOrBringAnotherWhileItIsWoken) {
  make_history(1);
  std::unique_ptr<Follower> victim = follow(1);
  std::shared_ptr<EventSubscription> second;
  std::shared_ptr<EventSubscription> first =
      EventSubscription::open(feed_, store(), 1, std::nullopt, [&] {
        victim.reset();
        first.reset();
        second = EventSubscription::open(feed_, store(), feed_->newest(), std::nullopt, [] {});
      });
  publish(1);
  EXPECT_EQ(victim, nullptr);
  EXPECT_EQ(feed_->followers(), 1U);
}

TEST_F(EventFeedTest, ASubscriptionMayBeDroppedWhileItsPageIsRead) {
  make_history(300);
  auto follower = follow(0);
  take_all(*follower);  // begins to read
  EXPECT_TRUE(follower->seen.empty());
  follower.reset();
  settle();
  const auto other = follow(0);
  take_until(*other, 300);
}

TEST_F(EventFeedTest, APurgedHistoryIsTheEndForThoseWhoAreThroughAndForThoseWhoAreBehind) {
  make_history(3);
  const auto through = follow(3);
  const auto behind = follow(0);
  take_all(*through);
  append({change::MarkDeleted{kId, clock_.wall_now()}});
  append({change::Purge{kId}});
  feed_->end();
  EXPECT_GE(through->woken, 1);
  take_all(*through);
  EXPECT_TRUE(through->has_ended);
  run_until([&] {
    take_all(*behind);
    return behind->has_ended;
  });
}

TEST_F(EventFeedTest, AHistoryWithAHoleIsAnErrorAndNotAnEndlessLoop) {
  make_history(2);
  feed_ = std::make_shared<EventFeed>(kId, 5);  // says more than the store has
  const auto follower = follow(2);
  run_until([&] {
    take_all(*follower);
    return follower->has_ended;
  });
}

}  // namespace
}  // namespace agbox
