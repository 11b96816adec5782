// SPDX-License-Identifier: Apache-2.0
// A delete at every moment: it always comes to its end, and nothing comes after it.
#include "base/failpoint.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DeleteTest : public ControlTest {
 protected:
  DeleteTest() { start(); }

  void expect_deleted_for_good(const std::string& id) {
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    const auto newest = handle(id).last_event_sequence();
    disarm();
    settle();
    run_until_idle();
    settle();
    EXPECT_EQ(handle(id).last_event_sequence(), newest);
    const auto types = event_types(id);
    EXPECT_EQ(types.back(), v1::SANDBOX_DELETED);
    EXPECT_EQ(std::ranges::count(types, v1::SANDBOX_READY), 0);
    expect_nothing_left();
  }
};

// L1: a delete during the create is the sandbox's end, wherever the create is.
TEST_F(DeleteTest, ADeleteWhileTheCreateIsHeldAtAnyOfItsStepsNeverResurrects) {
  for (const std::string& point : create_failpoints()) {
    SCOPED_TRACE(point);
    std::string id = "held-" + point;
    std::ranges::replace(id, '.', '-');
    create_held_at(id, point);
    ASSERT_TRUE(remove(id).has_value());
    expect_deleted_for_good(id);
  }
}

TEST_F(DeleteTest, ADeleteInTheMomentOfTheAcceptanceNeverResurrects) {
  run_until([&] { return docker().event_streams() == 1; });
  bool is_notified = false;
  directory().create(spec(), "at-once", [&](const Result<v1::SandboxHandle>& created) {
    ASSERT_TRUE(created.has_value());
    directory().remove("at-once",
                       [&](const Result<>& removed) { is_notified = removed.has_value(); });
  });
  run_until([&] { return is_notified; });
  expect_deleted_for_good("at-once");
}

// As of a client that is interrupted, and cleans up before the daemon has taken up what it wanted.
TEST_F(DeleteTest, ADeleteFindsTheCreateThatWasAskedForBeforeIt) {
  stop();
  docker().hold("GET /info");
  start();
  bool is_notified = false;
  directory().create(spec(), "early-1", [](const Result<v1::SandboxHandle>& created) {
    EXPECT_TRUE(created.has_value());
  });
  directory().remove("early-1",
                     [&](const Result<>& removed) { is_notified = removed.has_value(); });
  run_until([&] { return docker().held("GET /info") > 0; });
  docker().release("GET /info");
  run_until([&] { return is_notified; });
  expect_deleted_for_good("early-1");
}

TEST_F(DeleteTest, ADeleteGivesUpAPullThatNobodyElseWaitsFor) {
  engine().registry["docker.io/library/alpine:latest"] = {};
  docker().hold("POST /images/create");
  ASSERT_TRUE(create("pulling-1", spec({}, "alpine")).has_value());
  run_until([&] { return docker().held("POST /images/create") == 1; });
  ASSERT_TRUE(remove("pulling-1").has_value());
  expect_deleted_for_good("pulling-1");
  run_until([&] { return docker().abandoned("POST /images/create") == 1; });
}

TEST_F(DeleteTest, ADeleteDoesNotWaitForAGuestThatNeverComes) {
  guests_.script.connects = false;
  ASSERT_TRUE(create("silent-1").has_value());
  run_until([&] { return engine().find_container("agbox-primary-silent-1") != nullptr; });
  run_until([&] { return primary("silent-1").is_running(); });
  run_until_idle();
  ASSERT_TRUE(remove("silent-1").has_value());
  expect_deleted_for_good("silent-1");
}

TEST_F(DeleteTest, ADeleteDoesNotWaitForAnEntrypointThatNeverPasses) {
  guests_.script.answers_go = false;
  ASSERT_TRUE(create("endless-1").has_value());
  run_until([&] { return guests_.order("agbox-primary-endless-1") != nullptr; });
  ASSERT_TRUE(remove("endless-1").has_value());
  expect_deleted_for_good("endless-1");
}

TEST_F(DeleteTest, ADeleteDoesNotWaitForItsTurnAtTheStartGate) {
  docker().hold("POST /containers/*/start");
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(create("gate-" + std::to_string(i)).has_value());
  run_until([&] { return docker().held("POST /containers/*/start") == 6; });
  ASSERT_TRUE(create("gate-6").has_value());
  run_until([&] { return docker().calls("GET /images/*/json") == 7; });
  settle();
  run_until_idle();
  ASSERT_TRUE(remove("gate-6").has_value());
  wait_for_state("gate-6", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(docker().calls("POST /containers/*/start"), 6);
  docker().release("POST /containers/*/start");
}

TEST_F(DeleteTest, ADeleteDuringTheCleanUpOfAFailedCreateIsItsEnd) {
  docker().reply("POST /containers/*/start", 500, R"({"message":"no space left"})");
  docker().hold("DELETE /networks/*");
  ASSERT_TRUE(create("cleaning-1").has_value());
  run_until([&] { return docker().held("DELETE /networks/*") == 1; });
  ASSERT_TRUE(remove("cleaning-1").has_value());
  run_until([&] { return docker().abandoned("DELETE /networks/*") == 1; });
  docker().release("DELETE /networks/*");
  expect_deleted_for_good("cleaning-1");
  EXPECT_THAT(event_types("cleaning-1"),
              ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_DELETE_REQUESTED,
                          v1::SANDBOX_DELETED));
}

TEST_F(DeleteTest, AShutdownDuringTheCleanUpOfAFailedCreateLeavesItToTheNextStart) {
  docker().reply("POST /containers/*/start", 500, R"({"message":"no space left"})", 1);
  docker().hang("DELETE /networks/*", 1);
  ASSERT_TRUE(create("cleaning-2").has_value());
  run_until([&] { return docker().held("DELETE /networks/*") == 1; });
  restart();
  wait_for_state("cleaning-2", v1::SANDBOX_STATE_READY);
  EXPECT_EQ(docker().network_names().size(), 1U);
}

TEST_F(DeleteTest, ASecondDeleteIsAcceptedAndAddsNothing) {
  create_ready("twice-1");
  remove_held_at("twice-1", "delete.networks.before");
  EXPECT_TRUE(remove("twice-1").has_value());
  EXPECT_EQ(handle("twice-1").last_event_sequence(), 4U);
  restart();
  disarm();
  restart();
  wait_for_state("twice-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_TRUE(remove("twice-1").has_value());
  settle();
  EXPECT_EQ(handle("twice-1").last_event_sequence(), 5U);
}

// C3: a delete that the engine refuses has an end that clients can see, and can be asked for again.
TEST_F(DeleteTest, ADeleteThatTheEngineRefusesIsFailedAndCanBeAskedForAgain) {
  create_ready("stuck-1");
  docker().reply("DELETE /containers/*", 500, R"({"message":"device is busy"})");
  ASSERT_TRUE(remove("stuck-1").has_value());
  wait_for_state("stuck-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle("stuck-1").error_code(), "SANDBOX_DELETE_FAILED");
  EXPECT_THAT(handle("stuck-1").error_message(), HasSubstr("device is busy"));
  docker().clear_faults();
  ASSERT_TRUE(remove("stuck-1").has_value());
  wait_for_state("stuck-1", v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
  EXPECT_THAT(event_types("stuck-1"),
              ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_READY,
                          v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_FAILED,
                          v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_DELETED));
}

TEST_F(DeleteTest, WhatIsGoneAlreadyIsNoError) {
  create_ready("pruned-1");
  engine().containers.clear();
  guests_.end_all();
  ASSERT_TRUE(remove("pruned-1").has_value());
  wait_for_state("pruned-1", v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(DeleteTest, OthersAreNotTouched) {
  create_ready("stays-1");
  create_ready("stays-1-2");
  create_ready("goes-1");
  ASSERT_TRUE(remove("goes-1").has_value());
  wait_for_state("goes-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(docker().container_names(),
              testing::UnorderedElementsAre("agbox-primary-stays-1", "agbox-primary-stays-1-2"));
  EXPECT_EQ(link_directories().size(), 2U);
}

}  // namespace
}  // namespace agbox
