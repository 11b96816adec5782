// SPDX-License-Identifier: Apache-2.0
// A sandbox whose record is damaged says so, can be deleted, and harms no other.
#include "base/failpoint.h"
#include "guestlink/link_directory.h"
#include "model/reasons.h"
#include "store/sqlite.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class BadRecordsTest : public ExecTest {
 protected:
  static constexpr const char* kBad = "bad-1";

  BadRecordsTest() { create_ready(kBad); }

  // Between two runs of the daemon; `{}` stands for the number of the bad sandbox.
  void damage(std::string sql, const std::string& id = kBad) {
    sql.replace(sql.find("{}"), 2, "(SELECT number FROM sandbox WHERE sandbox_id = '" + id + "')");
    stop();
    {
      auto file = sqlite::Connection::open(temp_directory_.path() / "data" / "ids.db",
                                           sqlite::Access::ReadWrite, "");
      ASSERT_TRUE(file.has_value());
      ASSERT_TRUE(file->execute(sql).has_value());
    }
    start();
  }

  void expect_the_other_serves() {
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
    run_until([&] { return guests_.is_connected(container()); });
    begin_exec("still-1");
    end_exec("still-1", 0);
    wait_for_end("still-1");
  }

  void expect_failed(const std::string& code, const std::string& words) {
    wait_for_state(kBad, v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle(kBad).error_code(), code);
    EXPECT_THAT(handle(kBad).error_message(), HasSubstr(words));
    EXPECT_EQ(event_types(kBad).back(), v1::SANDBOX_FAILED);
    expect_the_other_serves();
    const std::uint64_t newest = handle(kBad).last_event_sequence();
    restart();  // is not told twice
    EXPECT_EQ(handle(kBad).last_event_sequence(), newest);
    EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_FAILED);
  }

  void expect_deletable() {
    ASSERT_TRUE(remove(kBad).has_value());
    wait_for_state(kBad, v1::SANDBOX_STATE_DELETED);
    EXPECT_THAT(docker().container_names(), ElementsAre(primary_container_name(kBox)));
    EXPECT_THAT(docker().network_names(), ElementsAre(network_name(kBox)));
    EXPECT_EQ(link_directories().size(), 1U);
  }
};

TEST_F(BadRecordsTest, ASpecThatCannotBeRead) {
  damage("UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox = {}");
  expect_failed("RECORD_UNREADABLE", "spec is not a CreateSpec");
  expect_deletable();
}

// Not even the id of its container is known.
TEST_F(BadRecordsTest, NothingRunsOnInOneThatCannotBeRead) {
  begin_exec("cut-off", {}, kBad);
  damage("UPDATE container SET record = x'ff' WHERE sandbox = {}");
  wait_for_end("cut-off");
  EXPECT_EQ(exec("cut-off").error_code(), "CONTAINER_EXITED");
  EXPECT_FALSE(primary(kBad).is_running());
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(exec_events(kBad),
              ElementsAre("EXEC_STARTED cut-off", "EXEC_FAILED cut-off", "SANDBOX_FAILED"));
  EXPECT_TRUE(primary(kBox).is_running());
  expect_the_other_serves();
}

// Whether its execs still run is for the engine to say, and until then nothing new is begun.
TEST_F(BadRecordsTest, OneWithExecsFailsOnceItsEngineIsThere) {
  begin_exec("cut-off", {}, kBad);
  docker().stop_listening();
  damage("UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox = {}");
  settle();
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_READY);
  EXPECT_EQ(exec("cut-off").state(), v1::EXEC_STATE_RUNNING);
  EXPECT_EQ(create_exec(request("late-1", {}, kBad)).error().reason(), reason::kSandboxNotReady);
  EXPECT_EQ(ask_stop(kBad).error().reason(), reason::kSandboxInvalidState);
  docker().listen();
  expect_failed("RECORD_UNREADABLE", "spec is not a CreateSpec");
  EXPECT_THAT(exec_events(kBad),
              ElementsAre("EXEC_STARTED cut-off", "EXEC_FAILED cut-off", "SANDBOX_FAILED"));
}

TEST_F(BadRecordsTest, ADeleteNeedNotWaitForTheFailure) {
  begin_exec("cut-off", {}, kBad);
  docker().stop_listening();
  damage("UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox = {}");
  ASSERT_TRUE(remove(kBad).has_value());
  docker().listen();
  wait_for_state(kBad, v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(exec_events(kBad), ElementsAre("EXEC_STARTED cut-off", "SANDBOX_DELETE_REQUESTED",
                                             "EXEC_CANCELLED cut-off", "SANDBOX_DELETED"));
}

class InterruptedHaltTest : public BadRecordsTest,
                            public testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(Every, InterruptedHaltTest,
                         testing::Values("halt.list.before", "halt.list.after", "halt.stop.before",
                                         "halt.stop.after"),
                         [](const auto& info) { return std::to_string(info.index); });

TEST_P(InterruptedHaltTest, IsFollowedByADaemonThatReportsTheFailure) {
  begin_exec("cut-off", {}, kBad);
  ASSERT_TRUE(failpoint::arm(GetParam() + "=hold"));
  damage("UPDATE container SET record = x'ff' WHERE sandbox = {}");
  wait_held_at(GetParam());
  EXPECT_EQ(exec("cut-off").state(), v1::EXEC_STATE_RUNNING);
  stop();
  disarm();
  start();
  expect_failed("RECORD_UNREADABLE", "not a Container");
  EXPECT_THAT(exec_events(kBad),
              ElementsAre("EXEC_STARTED cut-off", "EXEC_FAILED cut-off", "SANDBOX_FAILED"));
}

TEST_F(BadRecordsTest, ATimeOfQuietThatCannotBeReadHarmsNothing) {
  damage("UPDATE sandbox SET quiet_since = x'ff' WHERE number = {}");
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_READY);
  run_until([&] { return guests_.is_connected(container(kBad)); });
  expect_deletable();
}

// As a version with fewer checks or more features has stored it: an unknown field and a label "\n".
constexpr const char* kSpecOfAnotherVersion =
    "UPDATE sandbox_origin SET spec = CAST(spec || x'b0090132050a010a1200' AS BLOB) "
    "WHERE sandbox = {}";

TEST_F(BadRecordsTest, ASpecThatNoRequestMayHaveAnyMoreHarmsNothing) {
  damage(kSpecOfAnotherVersion);
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_READY);
  run_until([&] { return guests_.is_connected(container(kBad)); });
  expect_the_other_serves();
  EXPECT_TRUE(primary(kBad).is_running());
  stop_sandbox(kBad);
  resume_sandbox(kBad);
  expect_deletable();
}

TEST_F(BadRecordsTest, ACreateThatThisVersionCannotCarryOutFails) {
  create_held_at("new-1", "create.image.before");
  damage(kSpecOfAnotherVersion, "new-1");
  wait_for_state("new-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle("new-1").error_code(), "SANDBOX_CREATE_FAILED");
  EXPECT_THAT(handle("new-1").error_message(), HasSubstr("create_spec has field number 150"));
  disarm();
}

TEST_F(BadRecordsTest, ASpecThatIsNotValid) {
  damage("UPDATE sandbox_origin SET spec = x'' WHERE sandbox = {}");
  expect_failed("RECORD_UNREADABLE", "image is required");
  expect_deletable();
}

TEST_F(BadRecordsTest, AConfigurationThatCannotBeRead) {
  damage("UPDATE sandbox_origin SET created_with = x'ff' WHERE sandbox = {}");
  expect_failed("RECORD_UNREADABLE", "not a CreatedWith");
  expect_deletable();
}

TEST_F(BadRecordsTest, AContainerThatCannotBeRead) {
  damage("UPDATE container SET record = x'ff' WHERE sandbox = {}");
  expect_failed("RECORD_UNREADABLE", "not a Container");
  EXPECT_THAT(docker().container_names(), Contains(primary_container_name(kBad)));
  expect_deletable();
}

TEST_F(BadRecordsTest, AHistoryThatCannotBeGoneOnWithIsNamedByEveryCall) {
  damage("UPDATE event SET body = x'ff' WHERE sandbox = {}");
  const auto asked = directory().get(kBad);
  ASSERT_FALSE(asked.has_value());
  EXPECT_THAT(asked.error().message(), HasSubstr("cannot be read from the daemon's store"));
  EXPECT_EQ(remove(kBad).error(), asked.error());
  EXPECT_THAT(create(kBad).error().reason(), reason::kSandboxIdAlreadyExists);
  EXPECT_THAT(listed(), ElementsAre(kBox));
  expect_the_other_serves();
  // What it has stays for whoever repairs the store.
  EXPECT_THAT(docker().container_names(), Contains(primary_container_name(kBad)));
  EXPECT_THAT(docker().network_names(), Contains(network_name(kBad)));
  EXPECT_EQ(link_directories().size(), 2U);
}

TEST_F(BadRecordsTest, TheSubnetOfOneThatCanOnlyBeNamedIsGivenToNoOther) {
  const std::string taken = engine().find_network(network_name(kBad))->subnet;
  damage("UPDATE event SET body = x'ff' WHERE sandbox = {}");
  engine().networks.erase(engine().find_network(network_name(kBad))->id);
  create_ready("next-1");
  EXPECT_NE(engine().find_network(network_name("next-1"))->subnet, taken);
}

TEST_F(BadRecordsTest, ANetworkThatWasPruned) {
  stop_sandbox(kBad);
  stop();
  engine().networks.erase(engine().find_network(network_name(kBad))->id);
  start();
  expect_failed("NETWORK_MISSING", "network was removed");
  expect_deletable();
}

// It was disconnected by force first, while its container ran.
TEST_F(BadRecordsTest, ANetworkThatWasTakenFromARunningContainer) {
  stop();
  guests_.freeze(container(kBad));
  engine().find_container(container(kBad))->network.clear();
  engine().networks.erase(engine().find_network(network_name(kBad))->id);
  start();
  expect_failed("NETWORK_MISSING", "network was removed");
  EXPECT_FALSE(primary(kBad).is_running());
  expect_deletable();
}

TEST_F(BadRecordsTest, AContainerThatCarriesForeignLabels) {
  stop();
  guests_.freeze(container(kBad));
  engine().find_container(container(kBad))->labels[instance_label()] = "somebody-else";
  start();
  expect_failed("CONTAINER_NOT_RUNNING", "not ours");
  EXPECT_TRUE(primary(kBad).is_running()) << "it is left alone";
  ASSERT_TRUE(remove(kBad).has_value());
  run_until([&] { return state(kBad) != v1::SANDBOX_STATE_DELETING; });
  EXPECT_TRUE(primary(kBad).is_running());
}

TEST_F(BadRecordsTest, AGuestDirectoryThatIsGone) {
  stop();
  std::filesystem::remove_all(guestlink::LinkDirectory::path_of(link_root(), kBad));
  start();
  expect_failed("GUEST_UNREACHABLE", "the directory");
  EXPECT_FALSE(primary(kBad).is_running());
  expect_deletable();
}

TEST_F(BadRecordsTest, AGuestDirectoryThatIsAnotherOne) {
  const auto temp_directory = guestlink::LinkDirectory::path_of(link_root(), kBad);
  stop();
  std::filesystem::rename(temp_directory,
                          temp_directory_.path() / "kept-so-that-its-inode-is-taken");
  std::filesystem::create_directory(temp_directory);
  std::filesystem::permissions(temp_directory, std::filesystem::perms::owner_all);
  start();
  expect_failed("GUEST_UNREACHABLE", "the directory");
  expect_deletable();
}

// As before its disk is mounted, or while the host has no descriptors left.
TEST_F(BadRecordsTest, AGuestDirectoryThatCannotBeReachedIsWaitedFor) {
  const auto aside = temp_directory_.path() / "not-mounted";
  stop();
  std::filesystem::rename(link_root(), aside);
  start();
  wait_swept();
  run_until_idle();
  settle();
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_READY);
  EXPECT_FALSE(guests_.is_connected(container(kBad)));
  std::filesystem::rename(aside, link_root());
  run_until([&] { return guests_.is_connected(container(kBad)); });
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_READY);
  expect_the_other_serves();
}

// Nothing is decided about its sandboxes, whatever became of their containers.
TEST_F(BadRecordsTest, AnotherEngineBehindTheSocket) {
  stop();
  const std::string own = std::exchange(engine().id, "FAKE:ENGINE:0002");
  end_container(1, false, kBad);
  start();
  wait_swept();
  run_until_idle();
  settle();
  EXPECT_EQ(state(kBad), v1::SANDBOX_STATE_READY);
  EXPECT_FALSE(restarts().next().has_value());
  EXPECT_THAT(ask_stop(kBad).error().message(), HasSubstr("FAKE:ENGINE:0002"));
  EXPECT_EQ(docker().container_names().size(), 2U);
  docker().stop_listening();
  engine().id = own;
  docker().listen();
  run_until([&] { return restarts().next().has_value(); });  // it is started again
  expect_the_other_serves();
}

TEST_F(BadRecordsTest, ADeleteGoesOnWithoutTheSpec) {
  remove_held_at(kBad, "delete.containers.before");
  disarm();
  damage("UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox = {}");
  wait_for_state(kBad, v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(docker().container_names(), Not(Contains(primary_container_name(kBad))));
}

TEST_F(BadRecordsTest, ACreateWithoutItsSpecIsCleanedUp) {
  create_held_at("half-1", "create.network.after");
  disarm();
  ASSERT_TRUE(remove(kBad).has_value());
  wait_for_state(kBad, v1::SANDBOX_STATE_DELETED);
  damage("UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox = 1 + {}");
  wait_for_state("half-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle("half-1").error_code(), "RECORD_UNREADABLE");
  run_until([&] { return docker().network_names().size() == 1; });
}

}  // namespace
}  // namespace agbox
