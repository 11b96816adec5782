// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/stored_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

SandboxRecord ready_record(const store::v1::Container& primary) {
  SandboxRecord record;
  record.sandbox_id = "box-1";
  record.status.state = v1::SANDBOX_STATE_READY;
  record.operation.attempts = 1;
  record.containers[""] = primary;
  return record;
}

WorkState restarting() {
  return {.lifecycle = {.state = Lifecycle::Ready, .reason = {}},
          .work = work::AwaitRestart{},
          .restarts = {.count = 3, .last_exit = "exit code 2"}};
}

TEST(StoredWorkTest, ARestartIsStoredWithTheStartThatEnded) {
  store::v1::Container primary;
  primary.set_start_count(5);
  put_restarts(restarting(), primary);
  const WorkState read = work_of(ready_record(primary));
  EXPECT_TRUE(is_restarting(read));
  EXPECT_EQ(read.restarts, restarting().restarts);
  WorkState up = restarting();
  up.work = work::Idle{};
  put_restarts(up, primary);
  EXPECT_FALSE(is_restarting(work_of(ready_record(primary))));
}

// An older daemon has started the container since, and kept the fields that it does not know.
TEST(StoredWorkTest, ARestartOfAnEarlierStartIsOver) {
  store::v1::Container primary;
  primary.set_start_count(5);
  put_restarts(restarting(), primary);
  primary.set_start_count(6);
  const WorkState read = work_of(ready_record(primary));
  EXPECT_FALSE(is_restarting(read));
  EXPECT_EQ(read.restarts, restarting().restarts);
}

TEST(StoredWorkTest, ARecordWithoutRestartsHasNone) {
  const WorkState read = work_of(ready_record({}));
  EXPECT_FALSE(is_restarting(read));
  EXPECT_EQ(read.restarts, RestartState());
}

}  // namespace
}  // namespace agbox
