// SPDX-License-Identifier: Apache-2.0
// The daemon ends at every failpoint and another one starts on the same store.
#include "base/failpoint.h"
#include "model/reasons.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class RestartTest : public ControlTest {
 protected:
  RestartTest() { start(); }

  std::string id_for(const std::string& point) {
    std::string id = "at-" + point;
    std::ranges::replace(id, '.', '-');
    return id;
  }
};

TEST_F(RestartTest, ACreateThatWasInterruptedAnywhereStartsOver) {
  for (const std::string& point : create_failpoints()) {
    SCOPED_TRACE(point);
    const std::string id = id_for(point);
    create_held_at(id, point);
    stop();
    disarm();
    start();
    wait_for_state(id, v1::SANDBOX_STATE_READY);
    EXPECT_THAT(event_types(id), ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING,
                                             v1::SANDBOX_PREPARING, v1::SANDBOX_READY));
    EXPECT_EQ(docker().container_names().size(), 1U);
    EXPECT_EQ(network_names().size(), 1U);
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    expect_nothing_left();
  }
}

TEST_F(RestartTest, ADeleteThatWasInterruptedAnywhereGoesOn) {
  for (const std::string& point : failpoints_of_a_lifecycle({"delete."})) {
    SCOPED_TRACE(point);
    const std::string id = id_for(point);
    create_ready(id);
    remove_held_at(id, point);
    stop();
    disarm();
    start();
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    EXPECT_THAT(event_types(id),
                ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_READY,
                            v1::SANDBOX_DELETE_REQUESTED, v1::SANDBOX_DELETED));
    expect_nothing_left();
  }
}

TEST_F(RestartTest, TheThirdCrashOfTheDaemonDuringOneCreateIsItsFailure) {
  create_held_at("fatal-1", "start.container.after");
  for (int ended = 0; ended < 2; ++ended) {
    crash();
    failpoint::arm("start.container.after=hold");
    start();
    wait_held_at("start.container.after");
  }
  crash();
  disarm();
  start();
  wait_for_state("fatal-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle("fatal-1").error_code(), "SANDBOX_CREATE_FAILED");
  EXPECT_THAT(handle("fatal-1").error_message(), HasSubstr("3 times"));
  EXPECT_THAT(event_types("fatal-1"),
              ElementsAre(v1::SANDBOX_ACCEPTED, v1::SANDBOX_PREPARING, v1::SANDBOX_PREPARING,
                          v1::SANDBOX_PREPARING, v1::SANDBOX_FAILED));
  run_until([&] { return docker().network_names().empty() && link_directories().empty(); });
  settle();
  expect_nothing_left();
}

TEST_F(RestartTest, EndsThatWereAskedForAndStartsWithoutAnEngineAreNotCounted) {
  create_held_at("slow-1", "start.container.after");
  for (int ended = 0; ended < 4; ++ended) {
    stop();
    failpoint::arm("start.container.after=hold");
    start();
    wait_held_at("start.container.after");
  }
  stop();
  disarm();
  docker().stop_listening();
  for (int ended = 0; ended < 4; ++ended) {
    start();
    settle();
    crash();
  }
  docker().listen();
  start();
  wait_for_state("slow-1", v1::SANDBOX_STATE_READY);
}

TEST_F(RestartTest, AReadySandboxStaysReadyAndItsGuestComesBack) {
  create_ready("ready-1");
  const auto before = handle("ready-1");
  const std::string container = primary("ready-1").id;
  stop();
  run_until([&] { return !guests_.is_connected("agbox-primary-ready-1"); });
  start();
  EXPECT_EQ(handle("ready-1").SerializeAsString(), before.SerializeAsString());
  run_until([&] { return guests_.is_connected("agbox-primary-ready-1"); });
  EXPECT_EQ(primary("ready-1").id, container);
  EXPECT_EQ(handle("ready-1").last_event_sequence(), 3U);
}

TEST_F(RestartTest, AnotherStateRootIsForNewSandboxesOnly) {
  create_ready("old-root");
  stop();
  state_root_ = "elsewhere";
  start();
  run_until([&] { return guests_.is_connected("agbox-primary-old-root"); });
  create_ready("new-root");
  EXPECT_EQ(link_directories().size(), 1U);
  for (const char* id : {"old-root", "new-root"}) {
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
  expect_nothing_left();
  const std::filesystem::path old_links = temp_directory_.path() / "elsewhere" / "links";
  std::size_t roots = 0;
  for (const auto& root : std::filesystem::directory_iterator(old_links)) {
    ++roots;
    EXPECT_TRUE(std::filesystem::is_empty(root.path()));
    EXPECT_THAT(root.path().string(), testing::Not(testing::HasSubstr(instance_)))
        << "mounts of a container are public, the instance's ID is not";
  }
  EXPECT_EQ(roots, 1U);
}

// Older daemons kept the directories of all instances together.
TEST(SandboxFactsTest, TheGuestDirectoryIsSoughtWhereItWasMade) {
  SandboxFacts facts;
  EXPECT_EQ(facts.link_root(), "") << "nothing is known";
  facts.created_with.set_state_root("/srv/state");
  EXPECT_EQ(facts.link_root(), "/srv/state/links");
  facts.created_with.set_link_root("/srv/state/links/an-instance");
  EXPECT_EQ(facts.link_root(), "/srv/state/links/an-instance");
}

// L34: what was told once is told again, to the last bit.
TEST_F(RestartTest, HandlesAndEventsAreTheSameBytesAfterARestart) {
  clock_.advance(std::chrono::nanoseconds(123'456'789));
  create_ready("bytes-1", spec({{"a", "b"}}));
  const auto created_at = handle("bytes-1").created_at();
  std::vector<std::vector<std::string>> before;
  for (std::uint64_t from = 0; from <= 3; ++from) {
    auto& row = before.emplace_back();
    for (const Seen& one : events("bytes-1", from)) row.push_back(one.bytes);
    EXPECT_EQ(row.size(), 3 - from);
  }
  const auto stored = handle("bytes-1").SerializeAsString();
  restart();
  EXPECT_EQ(handle("bytes-1").SerializeAsString(), stored);
  EXPECT_EQ(handle("bytes-1").created_at().nanos(), created_at.nanos());
  for (std::uint64_t from = 0; from <= 3; ++from) {
    std::vector<std::string> row;
    for (const Seen& one : events("bytes-1", from)) row.push_back(one.bytes);
    EXPECT_EQ(row, before[from]);
  }
}

TEST_F(RestartTest, ASubnetIsNotGivenTwiceWhileItsNetworkIsNotMadeYet) {
  docker().drop("POST /networks/create");
  ASSERT_TRUE(create("first-1").has_value());
  run_until([&] { return docker().calls("POST /networks/create") >= 1; });
  stop();
  docker().clear_faults();
  // What starts over removes its own network first and keeps the engine busy with it meanwhile.
  docker().hold("GET /containers/json");
  start();
  create_ready("second-1");
  docker().release("GET /containers/json");
  wait_for_state("first-1", v1::SANDBOX_STATE_READY);
  EXPECT_NE(engine().find_network("agbox-net-first-1")->subnet,
            engine().find_network("agbox-net-second-1")->subnet);
}

TEST_F(RestartTest, ADeletedSandboxStaysReadableAndItsIdTaken) {
  create_ready("gone-1");
  ASSERT_TRUE(remove("gone-1").has_value());
  wait_for_state("gone-1", v1::SANDBOX_STATE_DELETED);
  restart();
  EXPECT_EQ(state("gone-1"), v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(handle("gone-1").image(), "busybox");
  EXPECT_EQ(event_types("gone-1").size(), 5U);
  const auto again = create("gone-1");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().reason(), reason::kSandboxIdAlreadyExists);
}

TEST_F(RestartTest, TheEngineNeedNotBeThereWhenTheDaemonStarts) {
  create_held_at("early-1", "create.network.after");
  stop();
  disarm();
  docker().stop_listening();
  start();
  settle();
  EXPECT_EQ(state("early-1"), v1::SANDBOX_STATE_PENDING);
  docker().listen();
  wait_for_state("early-1", v1::SANDBOX_STATE_READY);
}

TEST_F(RestartTest, WhatIsAcceptedWhileTheDaemonEndsIsDoneByTheNext) {
  run_until([&] { return docker().event_streams() == 1; });
  directory().create(spec(), "last-call", [](const Result<v1::SandboxHandle>&) {});
  stop();
  start();
  wait_for_state("last-call", v1::SANDBOX_STATE_READY);
}

}  // namespace
}  // namespace agbox
