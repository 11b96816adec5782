// SPDX-License-Identifier: Apache-2.0
// A container that would block the engine is not started; and if the engine blocks over one
// container, its sandbox has an end that clients see, and others go on.
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kBlocked = "box-1";
constexpr const char* kUnsafeFile = "ACCOUNT_FILE_UNSAFE";

class BlockedEngineTest : public ControlTest {
 protected:
  BlockedEngineTest() {
    patience_ = {.call = 3000ms, .removal = 2000ms};
    start();
  }

  void plant_fifo() {
    engine().find_container("agbox-primary-box-1")->files["/etc/passwd"].mode = fake::kFifoMode;
  }
  void expect_unsafe() {
    wait_for_state(kBlocked, v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle(kBlocked).error_code(), kUnsafeFile);
    EXPECT_THAT(handle(kBlocked).error_message(), HasSubstr("/etc/passwd is a FIFO"));
  }
  void expect_neighbour_works() {
    create_ready("neighbour-1");
    ASSERT_TRUE(remove("neighbour-1").has_value());
    wait_for_state("neighbour-1", v1::SANDBOX_STATE_DELETED);
  }
  void expect_deleted() {
    ASSERT_TRUE(remove(kBlocked).has_value());
    wait_for_state(kBlocked, v1::SANDBOX_STATE_DELETED);
    expect_nothing_left();
  }
};

TEST_F(BlockedEngineTest, AResumeDoesNotStartWhatWouldBlock) {
  create_ready(kBlocked);
  stop_sandbox(kBlocked);
  plant_fifo();
  docker().forget_calls();
  ASSERT_TRUE(ask_resume(kBlocked).has_value());
  expect_unsafe();
  EXPECT_EQ(docker().calls("POST /containers/*/start"), 0);
  // Replaced from outside, it is the sandbox that it was.
  engine().find_container("agbox-primary-box-1")->files["/etc/passwd"] = {};
  ASSERT_TRUE(ask_resume(kBlocked).has_value());
  wait_for_state(kBlocked, v1::SANDBOX_STATE_READY);
  expect_deleted();
}

TEST_F(BlockedEngineTest, ARestartDoesNotStartWhatWouldBlockAndIsNotTriedAgain) {
  create_ready(kBlocked);
  plant_fifo();
  docker().forget_calls();
  guests_.end_all();
  engine().end_container(*engine().find_container("agbox-primary-box-1"), 137);
  run_until([&] { return restarts().next().has_value(); });
  clock_.advance(1min);
  restarts().call_due();
  expect_unsafe();
  EXPECT_EQ(docker().calls("POST /containers/*/start"), 0);
  EXPECT_FALSE(restarts().next().has_value());
  expect_deleted();
}

TEST_F(BlockedEngineTest, AnImageThatWouldBlockIsNotStarted) {
  engine().find_image("busybox")->files["/etc/passwd"].mode = fake::kFifoMode;
  ASSERT_TRUE(create(kBlocked).has_value());
  expect_unsafe();
  expect_nothing_left();
  EXPECT_FALSE(ask_resume(kBlocked).has_value()) << "it has no container";
  expect_deleted();
}

TEST_F(BlockedEngineTest, AStartThatHangsAloneFailsTheResume) {
  create_ready(kBlocked);
  stop_sandbox(kBlocked);
  docker().hang("POST /containers/agbox-primary-box-1/start");
  ASSERT_TRUE(ask_resume(kBlocked).has_value());
  run_until([&] { return docker().held("POST /containers/*/start") == 1; });
  expect_neighbour_works();
  wait_for_state(kBlocked, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBlocked).error_code(), "SANDBOX_RESUME_FAILED");
  EXPECT_THAT(handle(kBlocked).error_message(), HasSubstr("although it answers other calls"));
  docker().clear_faults();
  ASSERT_TRUE(ask_resume(kBlocked).has_value());
  wait_for_state(kBlocked, v1::SANDBOX_STATE_READY);
}

// As if the engine holds its lock of the container: every call about it hangs.
TEST_F(BlockedEngineTest, ADeleteOfAContainerThatTheEngineHangsOverHasAnEnd) {
  create_ready(kBlocked);
  stop_sandbox(kBlocked);
  docker().hang("* /containers/agbox-primary-box-1*");
  ASSERT_TRUE(ask_resume(kBlocked).has_value());
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  ASSERT_TRUE(remove(kBlocked).has_value());
  run_until([&] { return docker().held("DELETE /containers/*") == 1; });
  expect_neighbour_works();
  wait_for_state(kBlocked, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle(kBlocked).error_code(), "SANDBOX_DELETE_FAILED");
  EXPECT_THAT(handle(kBlocked).error_message(), HasSubstr("not removed within 2 s"));
  EXPECT_THAT(handle(kBlocked).error_message(), HasSubstr("restart the engine"));
  docker().clear_faults();
  expect_deleted();
  EXPECT_THAT(event_types(kBlocked),
              ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_READY,
                          v1::SANDBOX_STOP_REQUESTED, v1::SANDBOX_STOPPED, v1::SANDBOX_ACCEPTED,
                          v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_FAILED,
                          v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_DELETED));
}

// What is known of a container does not change because the engine does not answer about it.
TEST_F(BlockedEngineTest, AnInspectionThatHangsAloneIsRepeated) {
  create_ready(kBlocked);
  docker().forget_calls();
  docker().hang("GET /containers/*/json", 1);
  guests_.end_all();
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  run_until([&] { return docker().calls("GET /containers/*/json") >= 2; });
  settle();
  EXPECT_EQ(state(kBlocked), v1::SANDBOX_STATE_READY);
}

}  // namespace
}  // namespace agbox
