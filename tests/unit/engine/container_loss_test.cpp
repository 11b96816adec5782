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

TEST(CompanionSeenTest, IsWhatTheEngineSays) {
  using State = CompanionSeen::State;
  using Health = CompanionSeen::Health;
  const ObjectOwner owner{.instance = "ours", .sandbox_id = "box-1"};
  ContainerSeen container;
  container.labels = companion_labels("ours", "box-1", "db", {});
  container.status = "created";
  const auto seen = [&] { return judge_companion(container, owner, "db"); };
  EXPECT_EQ(judge_companion(std::nullopt, owner, "db").state, State::Missing);
  EXPECT_EQ(seen(), CompanionSeen{.state = State::Created});

  container.status = "running";
  container.is_running = true;
  container.started_at = WallTime(std::chrono::seconds(7));
  container.networks = {{"agbox-net-box-1", "10.0.0.2"}};
  EXPECT_EQ(seen(), (CompanionSeen{.state = State::Running, .start_mark = "7000000000"}));
  const std::pair<const char*, Health> healths[] = {{"starting", Health::Starting},
                                                    {"healthy", Health::Healthy},
                                                    {"unhealthy", Health::Unhealthy},
                                                    {"none", Health::None},
                                                    {"", Health::None}};
  for (const auto& [text, health] : healths) {
    container.health = text;
    EXPECT_EQ(seen().health, health) << text;
  }
  container.probe_output = "fine";
  EXPECT_EQ(seen().probe_output, "fine");
  container.is_paused = true;
  EXPECT_EQ(seen().state, State::Paused);
  container.networks = {{"agbox-net-box-1", ""}};
  EXPECT_FALSE(seen().has_network);
  container.networks.clear();
  EXPECT_FALSE(seen().has_network);

  container.is_running = container.is_paused = false;
  container.status = "exited";
  container.exit_code = 137;
  container.was_oom_killed = true;
  container.health = "unhealthy";
  EXPECT_EQ(seen().state, State::Exited);
  EXPECT_EQ(seen().health, Health::None);
  EXPECT_TRUE(seen().has_network);
  EXPECT_TRUE(seen().loss->is_out_of_memory);
  EXPECT_EQ(seen().loss->exit_code, 137);
  EXPECT_EQ(judge_companion(container, owner, "other").state, State::Foreign);
  container.labels = owner.labels();
  EXPECT_EQ(seen().state, State::Foreign) << "a primary";
}

}  // namespace
}  // namespace agbox
