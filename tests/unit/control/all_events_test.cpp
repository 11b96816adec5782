// SPDX-License-Identifier: Apache-2.0
// The events of all sandboxes in one stream: resumed at every cursor, filtered, behind, and across
// restarts and purges.
#include "control/all_events.h"

#include "model/reasons.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

struct AllEventsReader {
  std::shared_ptr<AllEventsSubscription> subscription;
  std::vector<AllEventsSubscription::Item> items;
  std::optional<Result<>> end;
  int woken = 0;

  // Whether there was one.
  bool take_one() {
    auto next = subscription->next();
    if (const auto* ended = std::get_if<AllEventsSubscription::End>(&next)) end = ended->outcome;
    auto* item = std::get_if<AllEventsSubscription::Item>(&next);
    if (item != nullptr) items.push_back(std::move(*item));
    return item != nullptr;
  }
  void take_all() {
    while (take_one()) {
    }
  }
  // "<event_id>", with r: replay; "caught-up", "cursor"; ! in front: events before it are missing.
  std::vector<std::string> seen() const {
    std::vector<std::string> lines;
    for (const auto& item : items) {
      std::string line = item.has_caught_up ? "caught-up" : "cursor";
      if (item.event) line = item.event->event.event_id() + (item.is_replay ? "r" : "");
      lines.push_back((item.follows_gap ? "!" : "") + line);
    }
    return lines;
  }
  std::vector<std::string> events() const {
    std::vector<std::string> ids;
    for (const auto& item : items) {
      if (item.event) ids.push_back(item.event->event.event_id());
    }
    return ids;
  }
};

v1::SubscribeEventsRequest start_at(v1::EventsStart start) {
  v1::SubscribeEventsRequest request;
  request.set_start(start);
  return request;
}

v1::SubscribeEventsRequest after_cursor(const std::string& cursor) {
  v1::SubscribeEventsRequest request;
  request.set_cursor(cursor);
  return request;
}

// A feed of its own, whose events nothing else adds to.
class AllEventsTest : public ControlTest {
 protected:
  AllEventsTest() {
    start();
    feed_ = std::make_shared<AllEvents>(store(), Logger());
    add("a", {{"team", "red"}});
    add("b", {{"team", "blue"}});
  }

  void add(const std::string& id, const LabelMap& labels) {
    v1::SandboxHandle& handle = handles_[id];
    handle.set_sandbox_id(id);
    handle.mutable_labels()->insert(labels.begin(), labels.end());
    v1::CreateSpec wanted;
    wanted.set_image("busybox");
    append({change::CreateSandbox{.sandbox_id = id,
                                  .created_at = clock_.wall_now(),
                                  .status = {.state = v1::SANDBOX_STATE_PENDING,
                                             .changed_at = clock_.wall_now(),
                                             .error_code = {},
                                             .error_message = {}},
                                  .operation = {},
                                  .spec = wanted,
                                  .created_with = {}}});
  }
  Committed append(std::vector<Mutation> mutations) {
    std::optional<Committed> committed;
    store().append({.mutations = std::move(mutations), .urgency = Urgency::GoesOn},
                   [&](Result<Committed> result) { committed = std::move(*result); });
    run_until([&] { return committed.has_value(); });
    return std::move(*committed);
  }
  void publish(const std::string& id, int count = 1, v1::EventType type = v1::EXEC_STARTED) {
    std::vector<Mutation> mutations;
    for (int i = 0; i < count; ++i) {
      v1::SandboxEvent event;
      event.set_sandbox_id(id);
      event.set_event_type(type);
      mutations.emplace_back(change::AppendEvent{event});
    }
    feed_->publish(handles_[id], share(append(std::move(mutations)).events));
  }
  void purge(const std::string& id) {
    append({change::MarkDeleted{id, clock_.wall_now()}});
    append({change::Purge{id}});
    feed_->remove(handles_[id]);
  }
  std::unique_ptr<AllEventsReader> subscribe(const v1::SubscribeEventsRequest& request) {
    auto reader = std::make_unique<AllEventsReader>();
    reader->subscription =
        feed_->subscribe(request, [raw = reader.get()] { ++raw->woken; }).value();
    return reader;
  }
  // All that there is for it by now: the last event, or the cursor after it.
  void read(AllEventsReader& reader) {
    run_until([&] {
      reader.take_all();
      return reader.end || reader.subscription->position() == feed_->newest();
    });
  }
  std::vector<std::string> seen(const v1::SubscribeEventsRequest& request) {
    const auto reader = subscribe(request);
    read(*reader);
    return reader->seen();
  }

  std::map<std::string, v1::SandboxHandle> handles_;
  std::shared_ptr<AllEvents> feed_;
};

TEST_F(AllEventsTest, NowAndTheOldestAreTwoBeginnings) {
  publish("a");
  publish("b", 2);
  const auto now = subscribe(start_at(v1::EVENTS_START_NOW));
  const auto oldest = subscribe(start_at(v1::EVENTS_START_OLDEST));
  read(*now);
  read(*oldest);
  publish("a");
  read(*now);
  read(*oldest);
  EXPECT_THAT(now->seen(), ElementsAre("caught-up", "a-2"));
  EXPECT_THAT(oldest->seen(), ElementsAre("a-1r", "b-1r", "b-2r", "caught-up", "a-2"));
  EXPECT_EQ(now->items.back().cursor, oldest->items.back().cursor);
}

TEST_F(AllEventsTest, ABeginningIsRequired) {
  for (const auto& request : {v1::SubscribeEventsRequest(), start_at(v1::EVENTS_START_UNSPECIFIED),
                              start_at(static_cast<v1::EventsStart>(9))}) {
    const auto refused = feed_->subscribe(request, [] {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("start or cursor is required"));
  }
  EXPECT_EQ(feed_->subscribe(after_cursor(""), [] {}).error().reason(), reason::kInvalidArgument);
  EXPECT_EQ(feed_->subscribe(after_cursor("00000000-0"), [] {}).error().reason(),
            reason::kEventCursorOutOfRange);
}

// Cached events and pages alternate: the cache begins in the middle.
TEST_F(AllEventsTest, EveryCursorResumesWithoutAGapOrADuplicate) {
  publish("a", 100);
  const auto whole = subscribe(start_at(v1::EVENTS_START_OLDEST));
  for (int i = 0; i < 50; ++i) {
    publish("b", 1 + i % 3);
    publish("a");
  }
  read(*whole);
  const auto all = whole->events();
  EXPECT_THAT(all, SizeIs(feed_->newest()));
  std::size_t sent = 0;
  for (const auto& item : whole->items) {
    if (item.event) ++sent;
    const auto resumed = subscribe(after_cursor(item.cursor));
    read(*resumed);
    EXPECT_EQ(resumed->events(),
              std::vector(all.begin() + static_cast<std::ptrdiff_t>(sent), all.end()));
  }
}

TEST_F(AllEventsTest, FiltersByLabelAndType) {
  publish("a");
  publish("b");
  publish("a", 1, v1::SANDBOX_READY);
  publish("b", 1, v1::SANDBOX_READY);
  auto request = start_at(v1::EVENTS_START_OLDEST);
  (*request.mutable_label_selector())["team"] = "red";
  EXPECT_THAT(seen(request), ElementsAre("a-1r", "a-2r", "caught-up"));
  request.add_event_types(v1::SANDBOX_READY);
  EXPECT_THAT(seen(request), ElementsAre("a-2r", "caught-up"));
  request.clear_label_selector();
  EXPECT_THAT(seen(request), ElementsAre("a-2r", "b-2r", "caught-up"));
  // One that is created later.
  const auto reader = subscribe(request);
  add("c", {});
  publish("c", 1, v1::SANDBOX_READY);
  publish("c");
  read(*reader);
  EXPECT_THAT(reader->seen(), ElementsAre("a-2r", "b-2r", "caught-up", "c-1"));
}

TEST_F(AllEventsTest, ARareFilterStillAdvancesTheCursor) {
  auto request = start_at(v1::EVENTS_START_OLDEST);
  request.add_event_types(v1::SANDBOX_FAILED);
  publish("a", 600);
  const auto reader = subscribe(request);
  read(*reader);
  EXPECT_THAT(reader->seen(), ElementsAre("cursor", "cursor", "caught-up"));
  publish("b", 255);
  read(*reader);
  EXPECT_THAT(reader->items, SizeIs(3));  // not one per event
  publish("b");
  read(*reader);
  EXPECT_THAT(reader->items, SizeIs(4));
  // What it has to pass over again is little.
  auto rest = after_cursor(reader->items.back().cursor);
  EXPECT_THAT(seen(rest), ElementsAre("caught-up"));
  publish("b", 1, v1::SANDBOX_FAILED);
  read(*reader);
  EXPECT_EQ(reader->events(), std::vector<std::string>{"b-257"});
}

TEST_F(AllEventsTest, AStalledReaderSlowsNobodyAndCostsAFewEvents) {
  const auto stalled = subscribe(start_at(v1::EVENTS_START_NOW));
  const auto quick = subscribe(start_at(v1::EVENTS_START_NOW));
  for (int round = 0; round < 40; ++round) {
    publish(round % 2 == 0 ? "a" : "b", 50);
    read(*quick);
  }
  EXPECT_EQ(feed_->cached(), 256U);
  read(*stalled);
  EXPECT_EQ(stalled->events(), quick->events());
  EXPECT_THAT(stalled->events(), SizeIs(2000));
}

TEST_F(AllEventsTest, WithoutReadersNothingIsKept) {
  auto reader = subscribe(start_at(v1::EVENTS_START_NOW));
  publish("a", 10);
  EXPECT_EQ(feed_->cached(), 10U);
  reader.reset();
  EXPECT_EQ(feed_->cached(), 0U);
  publish("a");
  EXPECT_EQ(feed_->cached(), 0U);
  reader = subscribe(start_at(v1::EVENTS_START_OLDEST));
  publish("b");
  read(*reader);
  EXPECT_THAT(reader->events(), SizeIs(12));
}

// The commit is on disk, but what this thread shows of it comes later.
TEST_F(AllEventsTest, AnEventIsNotReadBeforeItIsPublished) {
  publish("a");
  const auto reader = subscribe(start_at(v1::EVENTS_START_OLDEST));
  v1::SandboxEvent event;
  event.set_sandbox_id("b");
  const Committed committed = append({change::AppendEvent{event}});
  read(*reader);
  EXPECT_THAT(reader->seen(), ElementsAre("a-1r", "caught-up"));
  feed_->publish(handles_["b"], share(committed.events));
  read(*reader);
  EXPECT_EQ(reader->seen().back(), "b-1");
}

TEST_F(AllEventsTest, PurgedEventsAreReportedToThoseWhoCouldHaveMissedThem) {
  publish("a", 2);
  publish("b", 2);
  publish("a", 2);
  const auto early = subscribe(start_at(v1::EVENTS_START_OLDEST));
  ASSERT_FALSE(early->take_one());
  read(*early);
  const std::string at_start = early->items.at(0).cursor;
  const std::string behind_b = early->items.at(3).cursor;
  const std::string at_end = early->items.back().cursor;
  purge("b");
  EXPECT_THAT(seen(start_at(v1::EVENTS_START_OLDEST)),
              ElementsAre("a-1r", "a-2r", "a-3r", "a-4r", "caught-up"));
  EXPECT_THAT(seen(after_cursor(at_start)), ElementsAre("a-2r", "!a-3r", "a-4r", "caught-up"));
  EXPECT_THAT(seen(after_cursor(behind_b)), ElementsAre("a-3r", "a-4r", "caught-up"));
  purge("a");
  EXPECT_THAT(seen(after_cursor(behind_b)), ElementsAre("!caught-up"));
  EXPECT_THAT(seen(after_cursor(at_end)), ElementsAre("caught-up"));
  EXPECT_THAT(seen(start_at(v1::EVENTS_START_OLDEST)), ElementsAre("caught-up"));
}

TEST_F(AllEventsTest, AStreamOutlivesWhatIsPurgedDuringIt) {
  const auto stalled = subscribe(start_at(v1::EVENTS_START_NOW));
  publish("b", 300);
  publish("a", 300);
  purge("b");
  add("c", {});
  publish("c");
  read(*stalled);
  EXPECT_EQ(stalled->seen().at(0), "caught-up");
  EXPECT_EQ(stalled->seen().at(1), "!a-1");
  EXPECT_EQ(stalled->seen().back(), "c-1");
  EXPECT_THAT(stalled->events(), SizeIs(301));
}

TEST_F(AllEventsTest, AReaderMayLeaveWhileItsPageIsReadOrItIsWoken) {
  publish("a", 300);
  auto leaving = subscribe(start_at(v1::EVENTS_START_OLDEST));
  EXPECT_FALSE(leaving->take_one());  // begins to read
  leaving.reset();
  settle();
  auto victim = subscribe(start_at(v1::EVENTS_START_NOW));
  std::shared_ptr<AllEventsSubscription> first = feed_
                                                     ->subscribe(start_at(v1::EVENTS_START_NOW),
                                                                 [&] {
                                                                   victim.reset();
                                                                   first.reset();
                                                                 })
                                                     .value();
  publish("b");
  EXPECT_EQ(victim, nullptr);
  EXPECT_EQ(feed_->cached(), 0U);
}

// The sandboxes of a daemon, with what it does by itself.
class EventsOfAllSandboxesTest : public ControlTest {
 protected:
  std::unique_ptr<AllEventsReader> subscribe(const v1::SubscribeEventsRequest& request) {
    auto reader = std::make_unique<AllEventsReader>();
    reader->subscription =
        directory().subscribe(request, [raw = reader.get()] { ++raw->woken; }).value();
    return reader;
  }
  // Until it has had everything that was recorded.
  void read(AllEventsReader& reader) {
    settle();
    const auto end = subscribe(start_at(v1::EVENTS_START_NOW));
    end->take_all();
    const std::uint64_t newest = end->subscription->position();
    run_until([&] {
      reader.take_all();
      return reader.subscription->position() >= newest;
    });
  }
  static std::vector<std::string> of(const std::vector<std::string>& events,
                                     const std::string& id) {
    std::vector<std::string> own;
    for (const std::string& event : events) {
      if (event.starts_with(id + "-")) own.push_back(event);
    }
    return own;
  }
  std::vector<std::string> history(const std::string& id) {
    std::vector<std::string> ids;
    for (const Seen& seen : events(id)) ids.push_back(seen.event.event_id());
    return ids;
  }
};

TEST_F(EventsOfAllSandboxesTest, AResumedStreamIsTheUnionOfAllHistoriesAcrossCrashes) {
  start();
  wait_for_engine();
  std::vector<std::string> ids;
  std::vector<std::string> seen;
  std::string cursor;
  for (int life = 0; life < 3; ++life) {
    for (int i = 0; i < 3; ++i) {
      ids.push_back("box" + std::to_string(life) + std::to_string(i));
      ASSERT_TRUE(create(ids.back()).has_value());
    }
    for (std::size_t i = ids.size() - 3; i < ids.size(); ++i) {
      wait_for_state(ids[i], v1::SANDBOX_STATE_READY);
    }
    if (life > 0) ASSERT_TRUE(remove(ids[0]).has_value());
    // Reads a part: the rest is for the next daemon.
    const auto reader =
        subscribe(cursor.empty() ? start_at(v1::EVENTS_START_OLDEST) : after_cursor(cursor));
    run_until([&] {
      while (reader->items.size() < 7 && reader->take_one()) {
      }
      return reader->items.size() == 7;
    });
    cursor = reader->items.back().cursor;
    for (const std::string& id : reader->events()) seen.push_back(id);
    reader->subscription.reset();
    crash();
    start();
    wait_for_engine();
  }
  wait_for_state(ids[0], v1::SANDBOX_STATE_DELETED);
  const auto rest = subscribe(after_cursor(cursor));
  read(*rest);
  for (const std::string& id : rest->events()) seen.push_back(id);
  std::size_t total = 0;
  for (const std::string& id : ids) {
    EXPECT_EQ(of(seen, id), history(id));
    total += history(id).size();
  }
  EXPECT_EQ(seen.size(), total);
  const auto again = subscribe(start_at(v1::EVENTS_START_OLDEST));
  read(*again);
  EXPECT_EQ(again->events(), seen) << "the order is that of the commits, for everyone";
}

TEST_F(EventsOfAllSandboxesTest, NewSandboxesAppearAndTheirStateIsAlreadyPublished) {
  start();
  wait_for_engine();
  auto request = start_at(v1::EVENTS_START_NOW);
  (*request.mutable_label_selector())["team"] = "red";
  std::vector<std::string> wrong;
  std::shared_ptr<AllEventsSubscription> subscription;
  std::vector<std::string> seen;
  subscription =
      directory()
          .subscribe(request,
                     [&] {
                       while (true) {
                         const auto next = subscription->next();
                         const auto* item = std::get_if<AllEventsSubscription::Item>(&next);
                         if (item == nullptr) return;
                         if (!item->event) continue;
                         const v1::SandboxEvent& event = item->event->event;
                         seen.push_back(event.event_id());
                         const auto handle = directory().get(event.sandbox_id());
                         if (handle && handle->last_event_sequence() < event.sequence()) {
                           wrong.push_back(event.event_id());
                         }
                       }
                     })
          .value();
  create_ready("red-box", spec({{"team", "red"}}));
  create_ready("blue-box", spec({{"team", "blue"}}));
  ASSERT_FALSE(create("red-box", spec({{"team", "blue"}})).has_value());
  stop_sandbox("red-box");
  ASSERT_TRUE(remove("red-box").has_value());
  wait_for_state("red-box", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(seen, history("red-box"));
  EXPECT_THAT(wrong, IsEmpty());
  subscription.reset();
}

}  // namespace
}  // namespace agbox
