// SPDX-License-Identifier: Apache-2.0
// What nobody claims is removed, and nothing else is.
#include <fstream>

#include "base/failpoint.h"
#include "guestlink/link_directory.h"
#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

// Of a container that is not its sandbox's primary.
Labels companion_labels(const std::string& instance, const std::string& sandbox_id) {
  Labels labels = primary_labels(instance, sandbox_id, {});
  labels[component_label()] = "companion";
  return labels;
}

class JanitorTest : public ControlTest {
 protected:
  JanitorTest() { start(); }

  const std::string& instance() { return store().instance_id(); }

  static std::string text(const Labels& labels) {
    std::string json;
    for (const auto& [key, value] : labels) {
      json += (json.empty() ? "\"" : ",\"") + key + "\":\"" + value + "\"";
    }
    return "{" + json + "}";
  }
  std::string add_container(const std::string& name, const Labels& labels) {
    engine().answer({.method = "POST",
                     .path = "/containers/create",
                     .query = {{"name", name}},
                     .body = R"({"Image":"busybox","Labels":)" + text(labels) + "}",
                     .registry_auth = {}});
    return engine().find_container(name)->id;
  }
  void add_network(const std::string& name, const Labels& labels) {
    engine().answer({.method = "POST",
                     .path = "/networks/create",
                     .query = {},
                     .body = R"({"Name":")" + name + R"(","Labels":)" + text(labels) + "}",
                     .registry_auth = {}});
  }
  fs::path execs() const { return temp_directory_.path() / "execs"; }

  // A sweep that has seen all that is there now.
  void sweep() {
    wait_swept();
    janitor().sweep();
    wait_swept();
  }
};

TEST_F(JanitorTest, WhatSandboxesHaveStays) {
  create_ready("kept-1");
  create_ready("kept-2");
  const auto containers = docker().container_names();
  const auto networks = docker().network_names();
  const auto directories = link_directories();
  sweep();
  restart();
  sweep();
  EXPECT_EQ(docker().container_names(), containers);
  EXPECT_EQ(docker().network_names(), networks);
  EXPECT_EQ(link_directories(), directories);
  EXPECT_EQ(state("kept-1"), v1::SANDBOX_STATE_READY);
}

TEST_F(JanitorTest, SweepsAtTheStartAndAfterEveryGap) {
  wait_swept();
  add_network("lost-a", network_labels(instance(), "lost-1", {}));
  run_until([&] { return docker().event_streams() == 1; });
  docker().drop_event_streams();
  run_until([&] { return docker().network_names().empty(); });
  const std::string ours = instance();
  stop();
  add_network("lost-b", network_labels(ours, "lost-2", {}));
  start();
  run_until([&] { return docker().network_names().empty(); });
}

TEST_F(JanitorTest, WhatIsLeftOfADeletedSandboxGoes) {
  create_ready("gone-1");
  ASSERT_TRUE(remove("gone-1").has_value());
  wait_for_state("gone-1", v1::SANDBOX_STATE_DELETED);
  // As if the engine had made them although the create was given up.
  add_container(primary_container_name("gone-1"), primary_labels(instance(), "gone-1", {}));
  add_container("agbox-cc-gone-1-db", companion_labels(instance(), "gone-1"));
  add_network(network_name("gone-1"), network_labels(instance(), "gone-1", {}));
  fs::create_directory(guestlink::LinkDirectory::path_of(link_root(), "gone-1"));
  sweep();
  expect_nothing_left();
}

// An engine finishes what a daemon asked it for that was killed meanwhile, after the next one has
// looked.
TEST_F(JanitorTest, WhatTheEngineMakesLateGoesAtOnce) {
  create_ready("late-1");
  ASSERT_TRUE(remove("late-1").has_value());
  wait_for_state("late-1", v1::SANDBOX_STATE_DELETED);
  wait_swept();
  run_until([&] { return docker().event_streams() == 1; });
  add_network(network_name("late-1"), network_labels(instance(), "late-1", {}));
  run_until([&] { return docker().network_names().empty(); });
  add_container(primary_container_name("late-1"), primary_labels(instance(), "late-1", {}));
  run_until([&] { return docker().container_names().empty(); });
}

TEST_F(JanitorTest, WhatOthersMakeIsNoReasonToLook) {
  create_ready("ours-1");
  wait_swept();
  run_until([&] { return docker().event_streams() == 1; });
  const unsigned sweeps = janitor().sweeps();
  add_network("bridge-of-somebody", {});
  add_network(network_name("theirs-1"), network_labels("another", "theirs-1", {}));
  add_container("somebodys", {});
  add_container(primary_container_name("theirs-1"), primary_labels("another", "theirs-1", {}));
  create_ready("ours-2");  // its own events come after those
  run_until_idle();
  EXPECT_EQ(janitor().sweeps(), sweeps);
  EXPECT_FALSE(janitor().is_sweeping());
}

TEST_F(JanitorTest, WhatTheEngineMakesDuringADeleteGoesWithIt) {
  create_ready("late-2");
  run_until([&] { return docker().event_streams() == 1; });
  docker().hold("DELETE /networks/*", 1);
  ASSERT_TRUE(remove("late-2").has_value());
  run_until([&] {
    return docker().held("DELETE /networks/*") == 1 && docker().container_names().empty();
  });
  add_container(primary_container_name("late-2"), primary_labels(instance(), "late-2", {}));
  const int lists = docker().calls("GET /containers/json");
  run_until_idle();
  docker().release("DELETE /networks/*");
  wait_for_state("late-2", v1::SANDBOX_STATE_DELETED);
  expect_nothing_left();
  EXPECT_GT(docker().calls("GET /containers/json"), lists);
}

TEST_F(JanitorTest, WhatIsLeftOfAFailedCreateGoes) {
  docker().reply("POST /containers/create", 500, R"({"message":"no space left"})");
  ASSERT_TRUE(create("failed-1").has_value());
  wait_for_state("failed-1", v1::SANDBOX_STATE_FAILED);
  docker().clear_faults();
  add_container(primary_container_name("failed-1"), primary_labels(instance(), "failed-1", {}));
  add_network(network_name("failed-1"), network_labels(instance(), "failed-1", {}));
  sweep();
  expect_nothing_left();
  EXPECT_EQ(state("failed-1"), v1::SANDBOX_STATE_FAILED);
}

TEST_F(JanitorTest, CompanionsAndNetworksOfNobodyGo) {
  create_ready("known-1");
  add_container("agbox-cc-lost-1-db", companion_labels(instance(), "lost-1"));
  add_container("agbox-cc-known-1-db", companion_labels(instance(), "known-1"));
  add_network(network_name("lost-1"), network_labels(instance(), "lost-1", {}));
  sweep();
  EXPECT_THAT(docker().container_names(), ElementsAre(primary_container_name("known-1")));
  EXPECT_THAT(docker().network_names(), ElementsAre(network_name("known-1")));
}

// After the store was restored from a backup it may hold somebody's work.
TEST_F(JanitorTest, AnUnknownPrimaryIsReportedAndKeepsWhatItNeeds) {
  const std::string name = primary_container_name("backup-1");
  const std::string id = add_container(name, primary_labels(instance(), "backup-1", {}));
  add_network(network_name("backup-1"), network_labels(instance(), "backup-1", {}));
  const fs::path temp_directory = guestlink::LinkDirectory::path_of(link_root(), "backup-1");
  fs::create_directories(temp_directory);
  sweep();
  EXPECT_THAT(docker().container_names(), ElementsAre(name));
  EXPECT_THAT(docker().network_names(), ElementsAre(network_name("backup-1")));
  EXPECT_TRUE(fs::exists(temp_directory));
  EXPECT_THAT(unknown_primaries(),
              ElementsAre(UnknownPrimary{
                  .sandbox_id = "backup-1", .container_id = id, .container_name = name}));
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  sweep();
  EXPECT_THAT(unknown_primaries(), IsEmpty());
  EXPECT_THAT(docker().network_names(), IsEmpty());
  EXPECT_FALSE(fs::exists(temp_directory));
}

TEST_F(JanitorTest, AnUnknownPrimaryKeepsTheIsolationWhenTheDaemonEnds) {
  add_container(primary_container_name("backup-1"), primary_labels(instance(), "backup-1", {}));
  sweep();
  stop();
  EXPECT_EQ(isolation_.removed_rules, false);
}

TEST_F(JanitorTest, LookAlikesAndOtherInstancesAreNotTouched) {
  const std::string other = "11111111-2222-4333-8444-555555555555";
  add_container("agbox-primary-foreign-1", primary_labels(other, "foreign-1", {}));
  add_container("agbox-cc-foreign-1-db", companion_labels(other, "foreign-1"));
  add_network("agbox-net-foreign-1", network_labels(other, "foreign-1", {}));
  add_container("agbox-cc-look-alike-db", {});
  add_network("agbox-net-look-alike", {});
  add_container("no-sandbox-named", {{instance_label(), instance()}});
  fs::create_directories(link_root() / "not-a-hash");
  fs::create_directories(link_root() / "0123456789abcdefg");
  std::ofstream(link_root() / "0123456789abcdef") << "a file";
  fs::create_directories(execs() / "my-own-notes");
  const auto containers = docker().container_names();
  const auto networks = docker().network_names();
  sweep();
  EXPECT_EQ(docker().container_names(), containers);
  EXPECT_EQ(docker().network_names(), networks);
  EXPECT_EQ(link_directories().size(), 3U);
  EXPECT_TRUE(fs::exists(execs() / "my-own-notes"));
  EXPECT_THAT(unknown_primaries(), IsEmpty());
}

// A second daemon of the same user, a store that was moved away for a while, and older daemons.
TEST_F(JanitorTest, GuestDirectoriesOfOthersBelowTheSameStateRootStay) {
  create_ready("known-1");
  const fs::path links = link_root().parent_path();
  const fs::path others = guestlink::LinkDirectory::path_of(
      links / "11111111-2222-4333-8444-555555555555", "foreign-1");
  const fs::path unmarked = guestlink::LinkDirectory::path_of(links, "older-1");
  fs::create_directories(others);
  fs::create_directories(unmarked);
  sweep();
  EXPECT_TRUE(fs::exists(others));
  EXPECT_TRUE(fs::exists(unmarked));
}

TEST_F(JanitorTest, AGuestDirectoryOfNobodyGoes) {
  create_ready("known-1");
  const fs::path lost = guestlink::LinkDirectory::path_of(link_root(), "lost-1");
  fs::create_directories(lost);
  std::ofstream(lost / "guest.sock") << "";
  sweep();
  EXPECT_FALSE(fs::exists(lost));
  EXPECT_EQ(link_directories().size(), 1U);
}

TEST_F(JanitorTest, TheOutputOfAPurgedSandboxGoesAndThatOfADeletedOneStays) {
  ttls_.history = std::chrono::hours(1);
  restart();
  create_ready("purged-1");
  ASSERT_TRUE(remove("purged-1").has_value());
  wait_for_state("purged-1", v1::SANDBOX_STATE_DELETED);
  clock_.advance(std::chrono::hours(2));
  directory().deadlines().call_due();
  run_until([&] { return !directory().get("purged-1").has_value(); });
  create_ready("deleted-1");
  ASSERT_TRUE(remove("deleted-1").has_value());
  wait_for_state("deleted-1", v1::SANDBOX_STATE_DELETED);
  fs::create_directories(execs() / "purged-1" / "deep");
  std::ofstream(execs() / "purged-1" / "one.stdout.log") << "text";
  fs::create_directories(execs() / "deleted-1");
  sweep();
  run_until([&] { return !fs::exists(execs() / "purged-1"); });
  EXPECT_TRUE(fs::exists(execs() / "deleted-1"));
}

TEST_F(JanitorTest, NothingOfACreateUnderWayIsTouched) {
  for (const std::string& point : create_failpoints()) {
    SCOPED_TRACE(point);
    std::string id = "at-" + point;
    std::ranges::replace(id, '.', '-');
    create_held_at(id, point);
    const auto containers = docker().container_names();
    const auto networks = docker().network_names();
    const auto directories = link_directories();
    sweep();
    // What is made beside the held step may have been added.
    EXPECT_THAT(docker().container_names(), IsSupersetOf(containers));
    EXPECT_THAT(docker().network_names(), IsSupersetOf(networks));
    EXPECT_THAT(link_directories(), IsSupersetOf(directories));
    disarm();
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
}

// One that cannot be removed is no reason to leave the others.
TEST_F(JanitorTest, ARefusedRemovalHarmsNoOther) {
  add_container("agbox-cc-lost-1-db", companion_labels(instance(), "lost-1"));
  add_container("agbox-cc-lost-2-db", companion_labels(instance(), "lost-2"));
  add_network(network_name("lost-3"), network_labels(instance(), "lost-3", {}));
  docker().reply("DELETE /containers/agbox-cc-lost-1-db", 500, R"({"message":"device busy"})");
  sweep();
  EXPECT_THAT(docker().container_names(), ElementsAre("agbox-cc-lost-1-db"));
  EXPECT_THAT(docker().network_names(), IsEmpty());
}

// The engine's events go on meanwhile, so no other sweep would come.
TEST_F(JanitorTest, ASweepThatFailedIsTriedAgain) {
  wait_swept();
  add_network(network_name("lost-1"), network_labels(instance(), "lost-1", {}));
  docker().reply("GET /networks", 200, "not JSON", 1);
  janitor().sweep();
  run_until([&] { return docker().network_names().empty(); });
}

TEST_F(JanitorTest, ASweepThatFailedDoesNotHoldUpTheShutdown) {
  wait_swept();
  docker().reply("GET /networks", 200, "not JSON");
  const unsigned sweeps = janitor().sweeps();
  janitor().sweep();
  run_until([&] { return janitor().sweeps() > sweeps; });
  stop();
}

TEST_F(JanitorTest, ASweepThatWasInterruptedAnywhereIsDoneByTheNext) {
  ttls_.history = std::chrono::hours(1);
  for (const char* point : {"janitor.containers.before",
                            "janitor.containers.after",
                            "janitor.remove_container.before",
                            "janitor.remove_container.after",
                            "janitor.networks.before",
                            "janitor.networks.after",
                            "janitor.remove_network.before",
                            "janitor.remove_network.after",
                            "janitor.links.before",
                            "janitor.links.after",
                            "janitor.bridges.before",
                            "janitor.bridges.after",
                            "janitor.guest_directories.before",
                            "janitor.guest_directories.after",
                            "janitor.outputs.before",
                            "janitor.outputs.after",
                            "janitor.purged.before",
                            "janitor.purged.after",
                            "janitor.remove_output.before",
                            "janitor.remove_output.after"}) {
    SCOPED_TRACE(point);
    std::string id = "of-" + std::string(point);
    std::ranges::replace(id, '.', '-');
    restart();
    create_ready(id);
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    clock_.advance(std::chrono::hours(2));
    directory().deadlines().call_due();
    run_until([&] { return !directory().get(id).has_value(); });
    add_container("agbox-cc-lost-1-db", companion_labels(instance(), "lost-1"));
    add_network(network_name("lost-1"), network_labels(instance(), "lost-1", {}));
    fs::create_directories(execs() / id);
    ASSERT_TRUE(failpoint::arm(std::string(point) + "=hold"));
    run_until([&] { return docker().event_streams() == 1; });
    docker().drop_event_streams();
    wait_held_at(point);
    stop();
    disarm();
    start();
    run_until([&] { return !fs::exists(execs() / id); });
    expect_nothing_left();
  }
}

}  // namespace
}  // namespace agbox
