// SPDX-License-Identifier: Apache-2.0
// The whole life of a sandbox: what clients see of it, what the engine is told, what is left.
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <fstream>

#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace json = boost::json;

class SandboxLifecycleTest : public ControlTest {
 protected:
  SandboxLifecycleTest() { start(); }

  // How many transactions the store has written: those frames of SQLite's log that end one.
  int commits() {
    std::ifstream in(store_options().path.string() + "-wal", std::ios::binary);
    const std::string log{std::istreambuf_iterator<char>(in), {}};
    const auto number_at = [&log](std::size_t at) {
      std::uint32_t number = 0;
      for (std::size_t i = at; i < at + 4; ++i) {
        number = number << 8U | static_cast<unsigned char>(log.at(i));
      }
      return number;
    };
    constexpr std::size_t log_header = 32;
    constexpr std::size_t frame_header = 24;
    int ended = 0;
    for (std::size_t at = log_header; at < log.size(); at += frame_header + number_at(8)) {
      if (number_at(at + 4) != 0) ++ended;
    }
    return ended;
  }
};

TEST_F(SandboxLifecycleTest, EventsAreNumberedAndSayTheStateThatTheHandleHas) {
  const auto created = create("whole-life", spec({{"team", "a"}}));
  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->state(), v1::SANDBOX_STATE_PENDING);
  EXPECT_EQ(created->last_event_sequence(), 1U);
  EXPECT_EQ(created->image(), "busybox");
  EXPECT_EQ(created->labels().at("team"), "a");
  EXPECT_EQ(created->created_at().seconds(), 1'700'000'000);
  wait_for_state("whole-life", v1::SANDBOX_STATE_READY);
  clock_.advance(5s);
  ASSERT_TRUE(remove("whole-life").has_value());
  EXPECT_EQ(state("whole-life"), v1::SANDBOX_STATE_DELETING);
  wait_for_state("whole-life", v1::SANDBOX_STATE_DELETED);

  const auto seen = events("whole-life");
  std::vector<std::string> story;
  for (const Seen& one : seen) {
    story.push_back(v1::EventType_Name(one.event.event_type()) + " " +
                    v1::SandboxState_Name(one.event.sandbox_state()) + " " +
                    one.event.sandbox_phase().phase() + one.event.sandbox_phase().reason());
    EXPECT_EQ(one.event.event_id(), "whole-life-" + std::to_string(one.event.sequence()));
    EXPECT_TRUE(one.event.has_occurred_at());
  }
  EXPECT_THAT(story, ElementsAre("SANDBOX_ACCEPTED SANDBOX_STATE_PENDING ",
                                 "SANDBOX_PREPARING SANDBOX_STATE_PENDING materialize",
                                 "SANDBOX_READY SANDBOX_STATE_READY ",
                                 "SANDBOX_DELETE_REQUESTED SANDBOX_STATE_DELETING delete_requested",
                                 "SANDBOX_DELETED SANDBOX_STATE_DELETED delete_requested"));
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i].event.sequence(), i + 1);
  const auto ended = handle("whole-life");
  EXPECT_EQ(ended.last_event_sequence(), 5U);
  EXPECT_EQ(ended.state_changed_at().seconds(), 1'700'000'005);
  expect_nothing_left();
}

TEST_F(SandboxLifecycleTest, AtEveryEventTheHandleHasItsSequenceAndState) {
  std::shared_ptr<EventSubscription> subscription;
  int checked = 0;
  const auto check = [&] {
    if (!subscription) return;
    while (true) {
      const auto next = subscription->next();
      const auto* item = std::get_if<EventSubscription::Item>(&next);
      if (item == nullptr) return;
      ++checked;
      const auto now = handle("atomic-1");
      EXPECT_GE(now.last_event_sequence(), item->event->event.sequence());
      if (now.last_event_sequence() == item->event->event.sequence()) {
        EXPECT_EQ(now.state(), item->event->event.sandbox_state());
      }
    }
  };
  ASSERT_TRUE(create("atomic-1").has_value());
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id("atomic-1");
  subscription = directory().subscribe(request, check).value();
  check();
  wait_for_state("atomic-1", v1::SANDBOX_STATE_READY);
  ASSERT_TRUE(remove("atomic-1").has_value());
  wait_for_state("atomic-1", v1::SANDBOX_STATE_DELETED);
  run_until([&] { return checked == 5; });
}

TEST_F(SandboxLifecycleTest, TheEngineGetsNamesLabelsAndSettingsThatClientsKnow) {
  create_ready("golden-1", spec({{"team", "a"}}));
  const std::string& instance = store().instance_id();

  const fake::Network& network = *engine().find_network("agbox-net-golden-1");
  EXPECT_EQ(network.subnet, "10.99.0.0/28");
  EXPECT_EQ(network.bridge_name, bridge_name(instance, "golden-1"));
  EXPECT_EQ(network.labels, network_labels(instance, "golden-1", {{"team", "a"}}));
  EXPECT_FALSE(network.spec.at("EnableIPv6").as_bool());

  const fake::Container& container = primary("golden-1");
  EXPECT_EQ(container.name, "agbox-primary-golden-1");
  EXPECT_EQ(container.labels, primary_labels(instance, "golden-1", {{"team", "a"}}));
  const json::object& made = container.spec;
  EXPECT_EQ(json::serialize(made.at("Entrypoint")), R"(["/.agbox-guest"])");
  EXPECT_EQ(json::serialize(made.at("Cmd")), "[]");
  EXPECT_EQ(made.at("User"), "0:0");
  EXPECT_EQ(json::serialize(made.at("Env")), R"(["HOST_GID=5678","HOST_UID=1234"])");
  EXPECT_EQ(json::serialize(made.at("Healthcheck").at("Test")), R"(["NONE"])");
  EXPECT_EQ(made.at("StopSignal"), "SIGTERM");
  const json::object& host = made.at("HostConfig").as_object();
  EXPECT_EQ(host.at("NetworkMode"), "agbox-net-golden-1");
  EXPECT_EQ(host.at("Privileged"), false);
  EXPECT_EQ(host.at("RestartPolicy").at("Name"), "no");
  EXPECT_EQ(json::serialize(host.at("CapDrop")), R"(["ALL"])");
  EXPECT_EQ(json::serialize(host.at("CapAdd")),
            R"(["CHOWN","DAC_OVERRIDE","FOWNER","FSETID","SETUID","SETGID","KILL","SYS_CHROOT"])");
  EXPECT_EQ(json::serialize(host.at("Dns")), R"(["192.0.2.53"])");
  EXPECT_EQ(host.at("PidsLimit"), std::clamp(1024 * ::sysconf(_SC_NPROCESSORS_ONLN), 2048L, 4096L));
  EXPECT_EQ(host.at("IpcMode"), "private");
  EXPECT_THAT(json::serialize(host.at("SecurityOpt")), HasSubstr("seccomp="));
  std::vector<std::string> mounts;
  for (const json::value& mount : host.at("Mounts").as_array()) {
    EXPECT_TRUE(mount.at("ReadOnly").as_bool());
    mounts.emplace_back(mount.at("Target").as_string());
  }
  EXPECT_THAT(mounts, ElementsAre("/.agbox-guest", "/.agbox-link", "/var/log/agents-sandbox/"));
}

TEST_F(SandboxLifecycleTest, TheGuestRunsTheImagesEntrypointWithTheCallersCommand) {
  engine().add_image("busybox", {{"Entrypoint", json::array{"/init", "--"}}});
  v1::CreateSpec wanted;
  wanted.set_image("busybox");
  wanted.add_command("sleep");
  wanted.add_command("1d");
  create_ready("ordered-1", parse_create_spec(wanted).value());
  const guest::v1::Go* order = guests_.order("agbox-primary-ordered-1");
  ASSERT_NE(order, nullptr);
  EXPECT_THAT(order->entrypoint(), ElementsAre("/init", "--"));
  EXPECT_THAT(order->command(), ElementsAre("sleep", "1d"));

  wanted.set_bypass_entrypoint(true);
  create_ready("bypassed-1", parse_create_spec(wanted).value());
  EXPECT_THAT(guests_.order("agbox-primary-bypassed-1")->entrypoint(), IsEmpty());
}

// L5: ready is more than a running container.
TEST_F(SandboxLifecycleTest, ReadyOnlyAfterTheGuestSaysThatTheEntrypointHasPassed) {
  guests_.script.answers_go = false;
  ASSERT_TRUE(create("patient-1").has_value());
  run_until([&] { return guests_.order("agbox-primary-patient-1") != nullptr; });
  run_until_idle();
  settle();
  EXPECT_TRUE(primary("patient-1").is_running());
  EXPECT_EQ(state("patient-1"), v1::SANDBOX_STATE_PENDING);
}

// P7: no fixed waits and no polling for "running".
TEST_F(SandboxLifecycleTest, ACreateAsksTheEngineForNothingTwice) {
  wait_swept();
  docker().forget_calls();
  create_ready("frugal-1");
  EXPECT_THAT(docker().call_log(),
              ElementsAre("GET /images/busybox/json", "POST /networks/create",
                          testing::StartsWith("GET /networks/"), "POST /containers/create",
                          // /etc, /etc/passwd and /etc/group
                          testing::EndsWith("/archive"), testing::EndsWith("/archive"),
                          testing::EndsWith("/archive"), testing::EndsWith("/start"),
                          testing::EndsWith("/json")));
}

// P2: a subscriber of a quiet sandbox costs nothing.
TEST_F(SandboxLifecycleTest, NothingPollsWhileNothingHappens) {
  create_ready("quiet-1");
  int woken = 0;
  v1::SubscribeSandboxEventsRequest request;
  request.set_sandbox_id("quiet-1");
  request.set_from_sequence(handle("quiet-1").last_event_sequence());
  const auto subscription = directory().subscribe(request, [&] { ++woken; }).value();
  settle();
  run_until_idle();
  docker().forget_calls();
  // Whatever polled with a period below this would be seen; the loop has nothing else to do.
  EXPECT_EQ(loop_.io().run_for(60ms), 0U);
  EXPECT_EQ(woken, 0);
  EXPECT_THAT(docker().call_log(), IsEmpty());
}

// P5: two commits for a create and two for a delete, each with all that belongs to it.
TEST_F(SandboxLifecycleTest, AnOperationIsTwoCommits) {
  run_until([&] { return docker().event_streams() == 1; });
  const auto commits_of = [&](const std::function<void()>& operation) {
    const int before = commits();
    operation();
    settle();
    return commits() - before;
  };
  EXPECT_EQ(commits_of([&] { create_ready("frugal-2"); }), 2);
  EXPECT_EQ(commits_of([&] {
              ASSERT_TRUE(remove("frugal-2").has_value());
              wait_for_state("frugal-2", v1::SANDBOX_STATE_DELETED);
            }),
            2);
}

TEST_F(SandboxLifecycleTest, AnAcceptedCreateIsOneChangeOnDisk) {
  create_held_at("accepted-1", "create.image.before");
  const auto stored = events("accepted-1");
  ASSERT_EQ(stored.size(), 2U);
  stop();
  disarm();
  auto reopened = Store::open(store_options()).value();
  const auto loaded = reopened->load().value();
  ASSERT_EQ(loaded.sandboxes.size(), 1U);
  EXPECT_EQ(loaded.sandboxes[0].newest_sequence, 2U);
  EXPECT_EQ(loaded.sandboxes[0].operation.operation, Operation::Creating);
}

TEST_F(SandboxLifecycleTest, OccurredAtNeverGoesBackWhenTheDateIsSet) {
  create_held_at("clock-1", "create.network.before");
  clock_.jump_wall(-3600s);
  ASSERT_TRUE(remove("clock-1").has_value());
  wait_for_state("clock-1", v1::SANDBOX_STATE_DELETED);
  const auto before = events("clock-1");
  for (const Seen& one : before) EXPECT_EQ(one.event.occurred_at().seconds(), 1'700'000'000);
}

TEST_F(SandboxLifecycleTest, OccurredAtNeverGoesBackOverARestartEither) {
  create_ready("clock-2");
  stop();
  clock_.jump_wall(-3600s);
  start();
  ASSERT_TRUE(remove("clock-2").has_value());
  wait_for_state("clock-2", v1::SANDBOX_STATE_DELETED);
  for (const Seen& one : events("clock-2")) {
    EXPECT_EQ(one.event.occurred_at().seconds(), 1'700'000'000);
  }
}

TEST_F(SandboxLifecycleTest, APullTellsItsProgressAndItsEnd) {
  auto& plan = engine().registry["docker.io/library/alpine:latest"];
  plan.lines = {R"({"status":"Pulling fs layer","id":"a"})",
                R"({"status":"Pull complete","id":"a"})"};
  docker().hold("POST /images/create");
  ASSERT_TRUE(create("pulled-1", spec({}, "alpine")).has_value());
  run_until([&] { return docker().held("POST /images/create") == 1; });
  loop_.io().run_for(1s);  // a shorter pull is not worth a word
  docker().release("POST /images/create");
  wait_for_state("pulled-1", v1::SANDBOX_STATE_READY);
  EXPECT_EQ(docker().calls("POST /images/create"), 1);
  EXPECT_THAT(event_types("pulled-1"), ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING,
                                                   v1::SANDBOX_PREPARING, v1::SANDBOX_READY));
  EXPECT_EQ(events("pulled-1")[2].event.sandbox_phase().phase(), "pulling alpine: 0 of 1 layers");
}

// P7, P8: those who wait for the same image wait for one pull.
TEST_F(SandboxLifecycleTest, ManyCreatesOfOneMissingImagePullOnce) {
  engine().registry["docker.io/library/alpine:latest"] = {};
  docker().hold("POST /images/create");
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(create("shared-" + std::to_string(i), spec({}, "alpine")).has_value());
  }
  run_until([&] { return docker().calls("GET /images/alpine/json") == 5; });
  run_until([&] { return docker().held("POST /images/create") == 1; });
  run_until_idle();
  docker().release("POST /images/create");
  for (int i = 0; i < 5; ++i) {
    wait_for_state("shared-" + std::to_string(i), v1::SANDBOX_STATE_READY);
  }
  EXPECT_EQ(docker().calls("POST /images/create"), 1);
}

TEST_F(SandboxLifecycleTest, ManyAtOnceHaveSubnetsOfTheirOwnAndLeaveNothing) {
  run_until([&] { return docker().event_streams() == 1; });
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(create("crowd-" + std::to_string(i)).has_value());
  for (int i = 0; i < 12; ++i) {
    wait_for_state("crowd-" + std::to_string(i), v1::SANDBOX_STATE_READY);
  }
  std::set<std::string> subnets;
  for (const auto& [id, network] : engine().networks) subnets.insert(network.subnet);
  EXPECT_EQ(subnets.size(), 12U);
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(remove("crowd-" + std::to_string(i)).has_value());
  for (int i = 0; i < 12; ++i) {
    wait_for_state("crowd-" + std::to_string(i), v1::SANDBOX_STATE_DELETED);
  }
  expect_nothing_left();
}

// As many as may start at once, in a create and in a resume.
TEST_F(SandboxLifecycleTest, GuestsThatDoNotComeUpHoldNoOtherStart) {
  constexpr int kSilent = 6;
  const auto id = [](int i) { return "silent-" + std::to_string(i); };
  const auto wait_for_starts = [&] {
    run_until([&] {
      return std::ranges::count_if(engine().containers, [](const auto& entry) {
               return entry.second.is_running();
             }) == kSilent;
    });
  };
  guests_.script.connects = false;
  for (int i = 0; i < kSilent; ++i) ASSERT_TRUE(create(id(i)).has_value());
  wait_for_starts();
  guests_.script.connects = true;
  create_ready("beside-creates");
  stop_sandbox("beside-creates");
  EXPECT_EQ(state(id(0)), v1::SANDBOX_STATE_PENDING);

  restart();  // it makes them anew
  for (int i = 0; i < kSilent; ++i) wait_for_state(id(i), v1::SANDBOX_STATE_READY);
  for (int i = 0; i < kSilent; ++i) stop_sandbox(id(i));
  guests_.script.connects = false;
  for (int i = 0; i < kSilent; ++i) ASSERT_TRUE(ask_resume(id(i)).has_value());
  wait_for_starts();
  guests_.script.connects = true;
  resume_sandbox("beside-creates");
  EXPECT_EQ(state(id(0)), v1::SANDBOX_STATE_PENDING);
}

TEST_F(SandboxLifecycleTest, ADeletedSandboxGivesItsSubnetBack) {
  // The pool holds sixteen.
  for (int i = 0; i < 20; ++i) {
    const std::string id = "round-" + std::to_string(i);
    create_ready(id);
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
}

}  // namespace
}  // namespace agbox
