// SPDX-License-Identifier: Apache-2.0
// How each check judges: from its facts to its findings, without I/O.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/doctor/checks/daemon_files.h"
#include "control/doctor/checks/isolation.h"
#include "unit/model/judged_check.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// --- isolation ---

TEST(IsolationCheck, ReportsEverySandboxThatIsNotVerified) {
  EXPECT_EQ(judged(IsolationCheck{}), "OK no sandbox is running\n");
  EXPECT_EQ(judged(IsolationCheck{.verified = 1}), "OK verified now for 1 running sandbox\n");
  const std::vector<IsolationCheck::Problem> box_1 = {{.sandbox_id = "box-1", .why = "no bridge"}};
  EXPECT_EQ(judged(IsolationCheck{.verified = 1, .failed = box_1}),
            "BROKEN sandbox box-1: no bridge | agbox sandbox stop box-1, and resume it when the "
            "firewall is in place\n");
  EXPECT_EQ(judged(IsolationCheck{.verified = 1, .paused = box_1}),
            "BROKEN sandbox box-1 is paused: no bridge | remove what is in the way, and agboxd "
            "unpauses it; or: agbox sandbox stop box-1\n");
  EXPECT_EQ(judged(IsolationCheck{.verified = 2, .unreachable = box_1}),
            "UNKNOWN sandbox box-1: its rules are in place, but could not be tested from inside: "
            "no bridge\nOK verified now for 2 running sandboxes\n");
  EXPECT_EQ(judged(IsolationCheck{.skipped = 2}),
            "UNKNOWN 2 running sandboxes were not checked, because those before took too long\n");
}

// --- files ---

TEST(StoreCheck, IsBrokenWithoutFreeSpace) {
  StoreCheck check{.path = "/data/ids.db", .space = {}};
  EXPECT_EQ(judged(check), "OK /data/ids.db accepts new work\n");
  check.space.refuses_new_work = true;
  EXPECT_THAT(judged(check), StartsWith("BROKEN the store /data/ids.db has no free space and "
                                        "refuses new work | free space on the disk of"));
  check.space.waiting_changes = 1;
  EXPECT_THAT(judged(check), HasSubstr("; 1 accepted change waits for it | "));
}

TEST(StoredSandboxesCheck, IsShownIfOneIsUnreadable) {
  EXPECT_EQ(judged(StoredSandboxesCheck{}), "");
  EXPECT_EQ(judged(StoredSandboxesCheck{.unreadable = {"box-1", "box-2"}}),
            "BROKEN cannot be read from the store: box-1, box-2 | agbox sandbox get <sandbox_id> "
            "says why and what to do\n");
}

}  // namespace
}  // namespace agbox
