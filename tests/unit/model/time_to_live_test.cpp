// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/time_to_live.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

using namespace std::chrono_literals;
using enum Lifecycle;

constexpr TimesToLive kAll{.idle = 1h, .cleanup = 2h, .history = 3h};
using Ttl = std::optional<std::chrono::nanoseconds>;

// The whole table: state, whether execs run, and what follows without and with a time of its own.
struct TtlRow {
  Lifecycle state;
  bool has_execs;
  Ttl usual;
  Ttl with_own;   // of 5 minutes
  Ttl with_zero;  // of its own
};
const TtlRow kTtlTable[] = {
    {Creating, false, {}, {}, {}}, {Creating, true, {}, {}, {}}, {Resuming, false, {}, {}, {}},
    {Resuming, true, {}, {}, {}},  {Ready, false, 1h, 5min, {}}, {Ready, true, {}, {}, {}},
    {Stopping, false, {}, {}, {}}, {Stopping, true, {}, {}, {}}, {Stopped, false, 2h, 2h, 2h},
    {Stopped, true, 2h, 2h, 2h},   {Failed, false, 2h, 2h, 2h},  {Failed, true, 2h, 2h, 2h},
    {Deleting, false, {}, {}, {}}, {Deleting, true, {}, {}, {}}, {Deleted, false, 3h, 3h, 3h},
    {Deleted, true, 3h, 3h, 3h},
};

TEST(TimeToLive, IsWhatTheTableSays) {
  for (const TtlRow& row : kTtlTable) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(row.state) << " " << row.has_execs);
    EXPECT_EQ(time_to_live(row.state, row.has_execs, std::nullopt, kAll), row.usual);
    EXPECT_EQ(time_to_live(row.state, row.has_execs, 5min, kAll), row.with_own);
    EXPECT_EQ(time_to_live(row.state, row.has_execs, 0ns, kAll), row.with_zero);
    // What is switched off stays off; what it has of its own still counts.
    EXPECT_EQ(time_to_live(row.state, row.has_execs, std::nullopt, {}), Ttl());
    const Ttl own = row.state == Ready ? row.with_own : Ttl();
    EXPECT_EQ(time_to_live(row.state, row.has_execs, 5min, {}), own);
  }
}

}  // namespace
}  // namespace agbox
