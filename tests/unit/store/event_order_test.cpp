// SPDX-License-Identifier: Apache-2.0
// The positions of events: one order over all sandboxes, that of their commits.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class EventOrderTest : public StoreTest {
 protected:
  EventOrderTest() { open(); }

  AllEventsPage all(std::uint64_t after = 0, std::uint64_t until = 1000, std::size_t count = 1000,
                    std::size_t bytes = 1 << 20) {
    return *ask<AllEventsPage>(
        [&](auto done) { store().read_all_events(after, until, count, bytes, done); });
  }
  // "<position> <event_id>" of each.
  static std::vector<std::string> text(const std::vector<StoredEvent>& events) {
    std::vector<std::string> lines;
    for (const StoredEvent& stored : events) {
      lines.push_back(std::to_string(stored.position) + " " + stored.event.event_id());
    }
    return lines;
  }
  void remove(const std::string& id) {
    ASSERT_TRUE(append(change::MarkDeleted{id, clock_.wall_now()}));
    ASSERT_TRUE(append(change::Purge{id}));
  }
};

TEST_F(EventOrderTest, PositionsFollowTheCommitsAndARefusedChangeLeavesNoGap) {
  ASSERT_TRUE(append(Change{{create("a"), event("a"), event("a")}}));
  const auto of_b = append(Change{{create("b"), event("b")}});
  EXPECT_THAT(text(of_b->events), ElementsAre("3 b-1"));
  EXPECT_FALSE(append(Change{{event("a"), create("b")}}).has_value());
  ASSERT_TRUE(append(Change{{event("b"), event("a")}}));
  const std::vector<std::string> order = {"1 a-1", "2 a-2", "3 b-1", "4 b-2", "5 a-3"};
  EXPECT_EQ(text(all().events), order);
  EXPECT_EQ(text(events("a")->events), (std::vector<std::string>{"1 a-1", "2 a-2", "5 a-3"}));
  EXPECT_EQ(store().load()->newest_position, 5U);
  open();
  EXPECT_EQ(text(all().events), order);
  ASSERT_TRUE(append(event("b")));
  EXPECT_THAT(text(all(5).events), ElementsAre("6 b-3"));
}

TEST_F(EventOrderTest, APurgedPositionIsNeverUsedAgain) {
  ASSERT_TRUE(append(Change{{create("a"), event("a"), create("b"), event("b"), event("b")}}));
  remove("b");
  open();
  EXPECT_EQ(store().load()->newest_position, 3U);
  ASSERT_TRUE(append(event("a")));
  EXPECT_THAT(text(all().events), ElementsAre("1 a-1", "4 a-2"));
  // One without events, and one that is older than the newest that was purged.
  ASSERT_TRUE(append(create("c")));
  remove("c");
  remove("a");
  EXPECT_EQ(store().load()->newest_position, 4U);
  EXPECT_THAT(all().events, IsEmpty());
}

TEST_F(EventOrderTest, PagesRespectTheirLimitsAndSayHowFarTheyReach) {
  ASSERT_TRUE(append(Change{{create("a"), create("b")}}));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(append(Change{{event("a"), event("b")}}));
  EXPECT_THAT(all().events, SizeIs(10));
  EXPECT_EQ(all(0, 10).last, 10U);
  EXPECT_THAT(text(all(3, 5).events), ElementsAre("4 b-2", "5 a-3"));
  EXPECT_EQ(all(3, 5).last, 5U);
  EXPECT_THAT(text(all(3, 10, 2).events), ElementsAre("4 b-2", "5 a-3"));
  EXPECT_EQ(all(3, 10, 2).last, 5U);
  EXPECT_THAT(text(all(3, 10, 0).events), ElementsAre("4 b-2"));
  EXPECT_THAT(text(all(3, 10, 1000, 1).events), ElementsAre("4 b-2"));
  EXPECT_THAT(all(10, 10).events, IsEmpty());
  EXPECT_EQ(all(10, 10).last, 10U);
  remove("b");
  EXPECT_THAT(text(all(8, 10).events), ElementsAre("9 a-5"));
  EXPECT_EQ(all(8, 10).last, 10U);
}

TEST_F(EventOrderTest, AnEventThatCannotBeReadAffectsNoOther) {
  ASSERT_TRUE(append(Change{{create("a"), event("a"), create("b"), event("b"), event("a")}}));
  store_.reset();
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(handle, "UPDATE event SET body = x'ff' WHERE position = 2", nullptr,
                         nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(handle);
  open();
  const AllEventsPage page = all();
  EXPECT_THAT(text(page.events), ElementsAre("1 a-1", "3 a-2"));
  EXPECT_THAT(page.unreadable, ElementsAre(HasSubstr("sandbox b")));
  EXPECT_THAT(all(1, 2).events, IsEmpty());
  EXPECT_EQ(all(1, 2).last, 2U);
}

}  // namespace
}  // namespace agbox
