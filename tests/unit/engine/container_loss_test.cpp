// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/container_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

TEST(ContainerLossTest, IsJudgedByWhatTheEngineSays) {
  const ObjectOwner owner{.instance = "ours", .sandbox_id = "box-1"};
  store::v1::Container kept;
  ContainerSeen container;
  container.labels = owner.labels();
  container.is_running = true;
  container.started_at = WallTime(std::chrono::seconds(7));
  kept.set_engine_started_at(start_mark(container));
  const auto seen = [&] { return judge_primary(kept, container, owner).seen.primary; };
  const auto how = [&] {
    return judge_primary(kept, container, owner).loss.value_or(ContainerLoss()).how;
  };
  EXPECT_EQ(seen(), PrimarySeen::Running);
  EXPECT_EQ(how(), "");
  EXPECT_EQ(judge_primary(kept, std::nullopt, owner).seen.primary, PrimarySeen::Missing);
  EXPECT_EQ(judge_primary(kept, std::nullopt, owner).loss->how, "it was removed");
  container.is_paused = true;
  EXPECT_EQ(seen(), PrimarySeen::Paused);
  EXPECT_EQ(how(), "");
  container.started_at = WallTime(std::chrono::seconds(8));
  EXPECT_EQ(seen(), PrimarySeen::OtherStart);
  EXPECT_THAT(how(), HasSubstr("started again"));
  container.is_paused = false;
  kept.clear_engine_started_at();  // of a sandbox that was made before this was stored
  EXPECT_EQ(seen(), PrimarySeen::Running);
  container.is_restarting = true;
  EXPECT_EQ(seen(), PrimarySeen::Exited);
  container.is_running = false;
  container.exit_code = 2;
  EXPECT_EQ(how(), "it exited with code 2");
  EXPECT_EQ(judge_primary(kept, container, owner).loss->exit_code, 2);
  container.was_oom_killed = true;
  EXPECT_TRUE(judge_primary(kept, container, owner).loss->is_out_of_memory);
  container.status = "created";
  EXPECT_EQ(seen(), PrimarySeen::Created);
  container.labels = ObjectOwner{.instance = "ours", .sandbox_id = "box-2"}.labels();
  EXPECT_EQ(seen(), PrimarySeen::Foreign);
  EXPECT_THAT(how(), HasSubstr("not ours"));
}

}  // namespace
}  // namespace agbox
