// SPDX-License-Identifier: Apache-2.0
// A create that the engine, the registry or the image refuses: FAILED with their words, and nothing
// left behind.
#include <boost/json.hpp>
#include <fstream>

#include "engine/docker/objects/object_owner.h"
#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CreateFailureTest : public ControlTest {
 protected:
  CreateFailureTest() { start(); }

  v1::SandboxHandle failed(const std::string& id, SandboxSpec wanted = spec()) {
    EXPECT_TRUE(create(id, std::move(wanted)).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_FAILED);
    const auto handle = this->handle(id);
    EXPECT_EQ(handle.error_code(), "SANDBOX_CREATE_FAILED");
    const auto last = events(id).back().event;
    EXPECT_EQ(last.event_type(), v1::SANDBOX_FAILED);
    EXPECT_EQ(last.sandbox_phase().error_message(), handle.error_message());
    return handle;
  }
};

struct Refusal {
  const char* name;
  const char* call;
  int status;
  const char* image = "busybox";
};

class EveryStepRefusedTest : public CreateFailureTest,
                             public testing::WithParamInterface<Refusal> {};

TEST_P(EveryStepRefusedTest, FailsWithTheEnginesWordsAndLeavesNothing) {
  docker().reply(GetParam().call, GetParam().status, R"({"message":"no space left on device"})");
  const auto handle = failed("refused-1", spec({}, GetParam().image));
  EXPECT_THAT(handle.error_message(), HasSubstr("no space left on device"));
  expect_nothing_left();
  docker().clear_faults();
  create_ready("after-it");  // its subnet and its place at the start gate are free again
  EXPECT_EQ(engine().find_network("agbox-net-after-it")->subnet.substr(0, 8), "10.99.0.");
}

INSTANTIATE_TEST_SUITE_P(Create, EveryStepRefusedTest,
                         testing::Values(Refusal{"image_500", "GET /images/*/json", 500},
                                         Refusal{"pull_404", "POST /images/create", 404, "missing"},
                                         Refusal{"network_500", "POST /networks/create", 500},
                                         Refusal{"network_409", "POST /networks/create", 409},
                                         Refusal{"network_inspect_404", "GET /networks/*", 404},
                                         Refusal{"container_500", "POST /containers/create", 500},
                                         Refusal{"container_404", "POST /containers/create", 404},
                                         Refusal{"start_500", "POST /containers/*/start", 500},
                                         Refusal{"start_404", "POST /containers/*/start", 404}),
                         [](const auto& refusal) { return refusal.param.name; });

// L25: what is not ours is named and stays.
TEST_F(CreateFailureTest, AForeignContainerOfOurNameIsNamedAndNotTouched) {
  engine().answer({.method = "POST",
                   .path = "/containers/create",
                   .query = {{"name", "agbox-primary-taken-1"}},
                   .body = R"({"Image":"busybox","HostConfig":{"NetworkMode":"none"}})",
                   .registry_auth = {}});
  const std::string foreign = primary("taken-1").id;
  const auto handle = failed("taken-1");
  EXPECT_THAT(handle.error_message(), HasSubstr("agbox-primary-taken-1"));
  EXPECT_THAT(handle.error_message(), HasSubstr("not ours"));
  ASSERT_TRUE(remove("taken-1").has_value());
  wait_for_state("taken-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(docker().container_names(), ElementsAre("agbox-primary-taken-1"));
  EXPECT_EQ(primary("taken-1").id, foreign);
  EXPECT_THAT(docker().network_names(), IsEmpty());
}

TEST_F(CreateFailureTest, AForeignNetworkOfOurNameIsNamedAndNotTouched) {
  engine().answer({.method = "POST",
                   .path = "/networks/create",
                   .query = {},
                   .body = R"({"Name":"agbox-net-taken-2","CheckDuplicate":true,"Labels":{}})",
                   .registry_auth = {}});
  ASSERT_THAT(docker().network_names(), ElementsAre("agbox-net-taken-2"));
  const auto handle = failed("taken-2");
  EXPECT_THAT(handle.error_message(), HasSubstr("agbox-net-taken-2"));
  EXPECT_THAT(handle.error_message(), HasSubstr("not ours"));
  EXPECT_THAT(docker().network_names(), ElementsAre("agbox-net-taken-2"));
}

// L23: what the registry says inside the progress stream is the failure.
TEST_F(CreateFailureTest, APullErrorInsideTheProgressStreamIsTheSandboxsError) {
  auto& plan = engine().registry["docker.io/library/alpine:latest"];
  plan.lines = {R"({"status":"Pulling from library/alpine"})",
                R"({"errorDetail":{"message":"denied: quota"},"error":"denied: quota"})"};
  plan.succeeds = false;
  EXPECT_THAT(failed("denied-1", spec({}, "alpine")).error_message(), HasSubstr("denied: quota"));
  expect_nothing_left();
}

TEST_F(CreateFailureTest, AGuestThatCannotPrepareItsContainerIsTheSandboxsError) {
  guests_.script.preparation_failure = "/etc/passwd is a directory";
  EXPECT_THAT(failed("unprepared-1").error_message(), HasSubstr("/etc/passwd is a directory"));
  expect_nothing_left();
}

TEST_F(CreateFailureTest, AnEntrypointThatEndsIsTheSandboxsError) {
  guests_.script.entrypoint_failure = "no licence";
  const auto handle = failed("ended-1");
  EXPECT_THAT(handle.error_message(), HasSubstr("exit code 3"));
  EXPECT_THAT(handle.error_message(), HasSubstr("no licence"));
  EXPECT_THAT(handle.error_message(), HasSubstr("bypass_entrypoint"));
  expect_nothing_left();
}

TEST_F(CreateFailureTest, WordsOfTheEngineThatAreNotTextAreTheSandboxsErrorTooAsFarAsTheyAre) {
  docker().reply("POST /containers/create", 500, "no \xff\xfe room");
  EXPECT_THAT(failed("bytes-1").error_message(), HasSubstr("no \uFFFD\uFFFD room"));
  expect_nothing_left();
}

TEST_F(CreateFailureTest, AnUndoThatIsCancelledBeforeItIsStoredDoesNotBegin) {
  wait_swept();
  docker().reply("POST /containers/create", 500, R"({"message":"no"})");
  ASSERT_TRUE(create("undone-1").has_value());
  run_until([&] { return docker().calls("POST /containers/create") == 1; });
  hold_store();
  run_until_idle();  // the create has failed, and its undo waits for the store
  docker().forget_calls();
  stop();
  EXPECT_THAT(docker().call_log(), IsEmpty());
}

// Nobody waits for the guest of a container that has ended.
TEST_F(CreateFailureTest, AContainerThatEndsBeforeItsGuestSaysHelloIsTheSandboxsErrorAtOnce) {
  run_until([&] { return docker().event_streams() == 1; });
  guests_.script.connects = false;
  ASSERT_TRUE(create("dead-1").has_value());
  const auto began = std::chrono::steady_clock::now();
  while (state("dead-1") == v1::SANDBOX_STATE_PENDING) {
    loop_.io().run_one_for(std::chrono::milliseconds(100));
    auto* container = engine().find_container(primary_container_name("dead-1"));
    if (container != nullptr && container->is_running()) engine().end_container(*container, 7);
  }
  EXPECT_EQ(state("dead-1"), v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle("dead-1").error_message(), HasSubstr("it exited with code 7"));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  expect_nothing_left();
}

// As an engine does that restarts.
TEST_F(CreateFailureTest, AContainerThatIsEndedOnceWhileItStartsIsStartedAgain) {
  run_until([&] { return docker().event_streams() == 1; });
  guests_.script.answers_go = false;
  const std::string name = primary_container_name("again-1");
  ASSERT_TRUE(create("again-1").has_value());
  run_until([&] { return guests_.order(name) != nullptr; });
  guests_.script = {};
  engine().end_container(*engine().find_container(name), 137);
  wait_for_state("again-1", v1::SANDBOX_STATE_READY);
  EXPECT_EQ(docker().container_names().size(), 1U);
}

TEST_F(CreateFailureTest, AnExecLogDirectoryThatCannotBeMadeIsTheSandboxsError) {
  std::ofstream(temp_directory_.path() / "execs") << "in the way";
  EXPECT_THAT(failed("logless-1").error_message(), HasSubstr("create exec log directory"));
  expect_nothing_left();
}

TEST_F(CreateFailureTest, ASubnetThatTheEngineHasGivenToOthersIsNotTakenAndNotAFailure) {
  occupy_all_subnets_but_the_last();
  create_ready("beside-1");
  EXPECT_EQ(engine().find_network("agbox-net-beside-1")->subnet, "10.99.0.240/28");
  EXPECT_THAT(failed("beside-2").error_message(), HasSubstr("network.address_pool 10.99.0.0/24"));
  EXPECT_EQ(network_names().size(), 1U);
}

// The engine is removing a network: it lists it no longer, and has not released its subnet.
TEST_F(CreateFailureTest, ASubnetOfANetworkThatIsNotListedIsNotTakenAndNotAFailure) {
  docker().reply("POST /networks/create", 403,
                 R"({"message":"Pool overlaps with other one on this address space"})", 6);
  create_ready("beside-1");
  EXPECT_EQ(engine().find_network("agbox-net-beside-1")->subnet, "10.99.0.16/28");
  ASSERT_TRUE(remove("beside-1").has_value());
  wait_for_state("beside-1", v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
}

TEST_F(CreateFailureTest, AnEngineThatRefusesEverySubnetIsTheSandboxsError) {
  docker().reply("POST /networks/create", 403,
                 R"({"message":"Pool overlaps with other one on this address space"})");
  EXPECT_THAT(failed("beside-1").error_message(), HasSubstr("Pool overlaps"));
  expect_nothing_left();
}

// The engine finishes a network that an earlier attempt asked for while another subnet is tried.
TEST_F(CreateFailureTest, ANetworkOfAnEarlierAttemptKeepsItsSubnet) {
  docker().hold("POST /networks/create", 1);
  docker().reply("POST /networks/create", 403,
                 R"({"message":"Pool overlaps with other one on this address space"})", 6);
  ASSERT_TRUE(create("again-1").has_value());
  run_until([&] { return docker().held("POST /networks/create") == 1; });
  fake::Network& late = engine().networks["late"];
  late.id = "late";
  late.name = network_name("again-1");
  late.labels = ObjectOwner{.instance = instance_, .sandbox_id = "again-1"}.labels();
  late.subnet = "10.99.0.0/28";
  late.spec =
      boost::json::parse(R"({"IPAM":{"Config":[{"Subnet":"10.99.0.0/28","Gateway":"10.99.0.1"}]}})")
          .as_object();
  docker().release("POST /networks/create");
  wait_for_state("again-1", v1::SANDBOX_STATE_READY);
  restart();
  docker().forget_calls();
  create_ready("next-1");
  EXPECT_EQ(docker().calls("POST /networks/create"), 1) << "the late one's subnet is known";
}

TEST_F(CreateFailureTest, ANetworkIsRefusedForGoodWhereItsSubnetIsFree) {
  docker().reply("POST /networks/create", 403, R"({"message":"networks have same bridge name"})");
  const auto handle = failed("bridge-1");
  EXPECT_THAT(handle.error_message(), HasSubstr("networks have same bridge name"));
  EXPECT_GT(docker().calls("POST /networks/create"), 1) << "one that is being made is not listed";
}

TEST_F(CreateFailureTest, AnEngineThatDoesNotSayWhichSubnetsItHasIsTheSandboxsError) {
  occupy_all_subnets_but_the_last();
  wait_swept();  // which asks for them too
  docker().reply("GET /networks", 500, R"({"message":"no space left on device"})", 2);
  const auto handle = failed("unlisted-1");
  EXPECT_THAT(handle.error_message(), HasSubstr("no space left on device"));
  run_until([&] { return network_names().empty(); });
}

TEST_F(CreateFailureTest, AnEmptyPoolIsTheSandboxsError) {
  stop();
  address_pool_ = "10.99.0.0/28";
  start();
  create_ready("only-one");
  EXPECT_THAT(failed("one-more").error_message(), HasSubstr("network.address_pool 10.99.0.0/28"));
  ASSERT_TRUE(remove("only-one").has_value());
  wait_for_state("only-one", v1::SANDBOX_STATE_DELETED);
  create_ready("in-its-place");
}

// L17: a clean-up that fails does not strand the sandbox, nor what is left of it.
TEST_F(CreateFailureTest, ACleanUpThatFailsIsTriedAgainUntilItIsDone) {
  docker().reply("POST /containers/*/start", 500, R"({"message":"no space left"})");
  docker().reply("DELETE /networks/*", 500, R"({"message":"busy"})");
  EXPECT_THAT(failed("unclean-1").error_message(), HasSubstr("no space left"));
  EXPECT_THAT(docker().network_names(), ElementsAre("agbox-net-unclean-1"));
  docker().clear_faults();
  run_until([&] { return docker().network_names().empty() && link_directories().empty(); });
  settle();
  expect_nothing_left();
  EXPECT_THAT(event_types("unclean-1"),
              ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_FAILED));
}

TEST_F(CreateFailureTest, AnUnfinishedCleanUpGoesOnAfterARestart) {
  docker().reply("POST /containers/*/start", 500, R"({"message":"no space left"})");
  docker().reply("DELETE /networks/*", 500, R"({"message":"busy"})");
  failed("unclean-2");
  stop();
  docker().clear_faults();
  start();
  run_until([&] { return docker().network_names().empty(); });
  EXPECT_EQ(state("unclean-2"), v1::SANDBOX_STATE_FAILED);
  restart();
  run_until_idle();
  EXPECT_EQ(handle("unclean-2").last_event_sequence(), 3U);
}

TEST_F(CreateFailureTest, AFailedSandboxCanBeDeletedWhileItsCleanUpIsTriedAgain) {
  docker().reply("POST /containers/*/start", 500, R"({"message":"no space left"})");
  docker().reply("DELETE /networks/*", 500, R"({"message":"busy"})");
  failed("unclean-3");
  docker().clear_faults();
  ASSERT_TRUE(remove("unclean-3").has_value());
  wait_for_state("unclean-3", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(handle("unclean-3").error_code(), "");
  expect_nothing_left();
}

}  // namespace
}  // namespace agbox
