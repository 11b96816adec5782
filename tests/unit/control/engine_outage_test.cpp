// SPDX-License-Identifier: Apache-2.0
// The engine goes away, hangs, answers nonsense or loses its answers in the middle of things:
// nothing fails for it, reads are answered meanwhile, and everything goes on when it is back.
#include "model/reasons.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// In the order of a create and a delete; the name of the calls that a fault is set for.
constexpr const char* kCreateCalls[] = {"GET /images/*/json",      "POST /networks/create",
                                        "GET /networks",           "GET /networks/*",
                                        "POST /containers/create", "POST /containers/*/start"};
constexpr const char* kDeleteCalls[] = {"GET /containers/json", "DELETE /containers/*",
                                        "GET /networks", "DELETE /networks/*"};

class EngineOutageTest : public ControlTest {
 protected:
  EngineOutageTest() { start(); }

  void expect_one_lifecycle(const std::string& id) {
    EXPECT_THAT(event_types(id),
                ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_READY,
                            v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_DELETED));
    expect_nothing_left();
  }
  // Each call of a life once, with the fault that `set` sets for it.
  void live_with_faults(const std::function<void(const char*)>& set) {
    occupy_all_subnets_but_the_last();  // so that the engine is asked for its networks too
    int number = 0;
    for (const char* call : kCreateCalls) {
      SCOPED_TRACE(call);
      const std::string id = "absent-create-" + std::to_string(number++);
      run_until([&] { return docker().event_streams() == 1; });
      set(call);
      ASSERT_TRUE(create(id).has_value());
      wait_for_state(id, v1::SANDBOX_STATE_READY);
      ASSERT_TRUE(remove(id).has_value());
      wait_for_state(id, v1::SANDBOX_STATE_DELETED);
      expect_one_lifecycle(id);
    }
    for (const char* call : kDeleteCalls) {
      SCOPED_TRACE(call);
      const std::string id = "absent-delete-" + std::to_string(number++);
      create_ready(id);
      set(call);
      ASSERT_TRUE(remove(id).has_value());
      wait_for_state(id, v1::SANDBOX_STATE_DELETED);
      expect_one_lifecycle(id);
    }
  }
};

TEST_F(EngineOutageTest, AConnectionThatBreaksAtAnyCallIsNoFailure) {
  live_with_faults([&](const char* call) { docker().drop(call, 2); });
}

TEST_F(EngineOutageTest, AnAnswerThatIsLostAtAnyCallIsNoFailure) {
  live_with_faults([&](const char* call) { docker().lose_answer(call, 1); });
}

TEST_F(EngineOutageTest, AnAnswerThatIsNonsenseAtAnyCallIsNoFailure) {
  live_with_faults([&](const char* call) { docker().garble(call, "\x01\x02 what?\r\n\r\n", 1); });
}

TEST_F(EngineOutageTest, AnEngineThatHangsAndDiesInTheMiddleIsWaitedFor) {
  occupy_all_subnets_but_the_last();
  int number = 0;
  for (const char* call : kCreateCalls) {
    SCOPED_TRACE(call);
    const std::string id = "hung-" + std::to_string(number++);
    run_until([&] { return docker().event_streams() == 1; });
    docker().hang(call);
    ASSERT_TRUE(create(id).has_value());
    run_until([&] { return docker().held(call) >= 1; });
    // Reads do not wait for the engine.
    EXPECT_EQ(state(id), v1::SANDBOX_STATE_PENDING);
    EXPECT_FALSE(listed().empty());
    docker().clear_faults();
    docker().stop_listening();
    run_until_idle();
    settle();
    EXPECT_EQ(state(id), v1::SANDBOX_STATE_PENDING);
    docker().listen();
    wait_for_state(id, v1::SANDBOX_STATE_READY);
    ASSERT_TRUE(remove(id).has_value());  // it has the only subnet
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
}

TEST_F(EngineOutageTest, ADeleteWaitsForTheEngineAndGoesOn) {
  create_ready("waiting-1");
  docker().stop_listening();
  ASSERT_TRUE(remove("waiting-1").has_value());
  run_until_idle();
  settle();
  EXPECT_EQ(state("waiting-1"), v1::SANDBOX_STATE_DELETING);
  docker().listen();
  wait_for_state("waiting-1", v1::SANDBOX_STATE_DELETED);
  expect_one_lifecycle("waiting-1");
}

TEST_F(EngineOutageTest, ADeleteOfACreateThatWaitsForTheEngineNeedsNoFurtherTry) {
  run_until([&] { return docker().event_streams() == 1; });
  docker().drop("POST /networks/create");
  ASSERT_TRUE(create("both-1").has_value());
  run_until([&] { return docker().calls("POST /networks/create") >= 2; });
  ASSERT_TRUE(remove("both-1").has_value());
  wait_for_state("both-1", v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(EngineOutageTest, WithoutAnEngineACreateIsRefusedAndReservesNothing) {
  run_until([&] { return docker().event_streams() == 1; });
  docker().stop_listening();
  std::optional<Result<v1::SandboxHandle>> reply;
  run_until([&] {
    directory().create(spec(), "", [&](auto result) { reply = std::move(result); });
    run_until([&] { return reply.has_value(); });
    return !reply->has_value();
  });
  EXPECT_EQ(reply->error().reason(), reason::kEngineUnavailable);
  EXPECT_THAT(reply->error().message(), HasSubstr("Docker Engine is unreachable"));
  reply.reset();
  directory().create(spec(), "again-1", [&](auto result) { reply = std::move(result); });
  EXPECT_FALSE(reply->has_value());
  docker().listen();
  create_ready("again-1");
}

TEST_F(EngineOutageTest, AnEngineThatCannotRunSandboxesIsToldAsSuch) {
  stop();
  engine().info_overrides = {
      {"SecurityOptions", {"name=seccomp,profile=default", "name=rootless"}}};
  start();
  std::optional<Result<v1::SandboxHandle>> reply;
  directory().create(spec(), "unfit-1", [&](auto result) { reply = std::move(result); });
  run_until([&] { return reply.has_value(); });
  ASSERT_FALSE(reply->has_value());
  EXPECT_EQ(reply->error().reason(), reason::kEngineUnavailable);
  EXPECT_THAT(reply->error().message(), testing::StartsWith("Docker "));
  EXPECT_THAT(reply->error().message(), HasSubstr("cannot run sandboxes: it is rootless"));
}

// L31: the stream comes back by itself, and with it everything that waits for it.
TEST_F(EngineOutageTest, CreatesAreAcceptedAgainAfterTheEventStreamAloneWasLost) {
  run_until([&] { return docker().event_streams() == 1; });
  create_ready("before-1");  // leaves an idle connection: the engine itself is not lost
  docker().send_raw_event("this is not JSON");
  run_until([&] { return docker().event_streams() == 0; });
  run_until([&] { return docker().event_streams() == 1; });
  run_until_idle();
  create_ready("after-1");
  docker().drop_event_streams();
  run_until([&] { return docker().event_streams() == 0; });
  run_until([&] { return docker().event_streams() == 1; });
  create_ready("after-2");
}

TEST_F(EngineOutageTest, AnotherEngineBehindTheSocketIsNotTheSandboxsEngine) {
  create_ready("loyal-1");
  docker().stop_listening();
  const std::string own = std::exchange(engine().id, "FAKE:ENGINE:0002");
  docker().listen();
  ASSERT_TRUE(remove("loyal-1").has_value());
  run_until([&] { return docker().event_streams() == 1; });
  settle();
  EXPECT_EQ(state("loyal-1"), v1::SANDBOX_STATE_DELETING);
  EXPECT_EQ(docker().container_names().size(), 1U);
  docker().stop_listening();
  engine().id = own;
  docker().listen();
  wait_for_state("loyal-1", v1::SANDBOX_STATE_DELETED);
}

TEST_F(EngineOutageTest, ACreateDoesNotWaitLongForAnEngineThatHangsFromTheStart) {
  stop();
  first_answer_timeout_ = std::chrono::milliseconds(50);
  docker().hang("*");
  start();
  std::optional<Result<v1::SandboxHandle>> created;
  directory().create(spec(), "hanging-1", [&](auto result) { created = std::move(result); });
  run_until([&] { return created.has_value(); });
  ASSERT_FALSE(created->has_value());
  EXPECT_EQ(created->error().reason(), reason::kEngineUnavailable);
  EXPECT_EQ(created->error().message(), "the Docker Engine has not answered yet");
  EXPECT_EQ(directory().get("hanging-1").error().reason(), reason::kSandboxNotFound);
}

TEST_F(EngineOutageTest, AShutdownDoesNotWaitForAnEngineThatHangs) {
  run_until([&] { return docker().event_streams() == 1; });
  docker().hang("*");
  ASSERT_TRUE(create("hanging-1").has_value());
  run_until([&] { return docker().held("GET /images/*/json") == 1; });
  stop();
}

TEST_F(EngineOutageTest, AShutdownDoesNotWaitForTheNextTry) {
  run_until([&] { return docker().event_streams() == 1; });
  docker().drop("GET /images/*/json");
  ASSERT_TRUE(create("retrying-1").has_value());
  run_until([&] { return docker().calls("GET /images/*/json") >= 3; });
  stop();
  const int calls = docker().calls("GET /images/*/json");
  run_until_idle();
  EXPECT_EQ(docker().calls("GET /images/*/json"), calls);
}

}  // namespace
}  // namespace agbox
