// SPDX-License-Identifier: Apache-2.0
// Files of the host in a sandbox: what its container mounts, and that every start shows the very
// files that were accepted.
#include <fstream>

#include "base/failpoint.h"
#include "model/reasons.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kMounted = "mounts-1";
constexpr const char* kChanged = "MOUNT_CHANGED";

class MountsTest : public ControlTest {
 protected:
  MountsTest() : source_(fs::canonical(temp_directory_.path()) / "project") {
    fs::create_directory(source_);
    fs::permissions(source_, fs::perms::all);  // commands run as another user
    start();
  }

  SandboxSpec mounting(const std::string& source, bool is_writable = false) {
    v1::CreateSpec wanted = spec().create_spec;
    v1::MountSpec& mount = *wanted.add_mounts();
    mount.set_source(source);
    mount.set_target("/workspace/");
    mount.set_writable(is_writable);
    return parse_create_spec(wanted).value();
  }
  std::string container() { return primary(kMounted).name; }
  // Puts another directory in the source's place.
  void replace_source() {
    fs::rename(source_, source_.string() + "-before");
    fs::create_directory(source_);
  }
  void restore_source() {
    fs::remove(source_);
    fs::rename(source_.string() + "-before", source_);
  }
  void expect_failed(const std::string& message) {
    wait_for_state(kMounted, v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle(kMounted).error_code(), kChanged);
    EXPECT_THAT(handle(kMounted).error_message(), HasSubstr(message));
  }
  void end_container() { engine().end_container(*engine().find_container(container()), 1); }

  const fs::path source_;
};

TEST_F(MountsTest, TheContainerMountsWhatWasAskedFor) {
  fs::create_directory_symlink(temp_directory_.path(), temp_directory_.path() / "way");
  create_ready(kMounted, mounting(temp_directory_.path() / "way/project", true));
  const auto& mounts = primary(kMounted).spec.at("HostConfig").at("Mounts").as_array();
  const auto& mount = mounts.back().as_object();
  EXPECT_EQ(mount.at("Source").as_string(), source_.string());
  EXPECT_EQ(mount.at("Target").as_string(), "/workspace");
  EXPECT_EQ(mount.at("Type").as_string(), "bind");
  EXPECT_FALSE(mount.at("ReadOnly").as_bool());
  EXPECT_TRUE(mount.at("BindOptions").at("NonRecursive").as_bool());
  ASSERT_EQ(handle(kMounted).mounts_size(), 1);
  EXPECT_EQ(handle(kMounted).mounts(0).source(), source_.string());
  EXPECT_EQ(handle(kMounted).mounts(0).target(), "/workspace");
  EXPECT_TRUE(handle(kMounted).mounts(0).writable());
  restart();
  EXPECT_EQ(handle(kMounted).mounts(0).source(), source_.string());
}

TEST_F(MountsTest, ASourceThatIsRefusedReservesNothing) {
  for (const std::string& source :
       std::vector<std::string>{"/", "/proc/1", (source_ / "none").string()}) {
    const auto created = create(kMounted, mounting(source));
    ASSERT_FALSE(created.has_value()) << source;
    EXPECT_EQ(created.error().reason(), reason::kInvalidArgument);
  }
  EXPECT_THAT(listed(), IsEmpty());
  create_ready(kMounted, mounting(source_));  // the ID is free
}

TEST_F(MountsTest, ASourceThatChangesBeforeTheStartFailsTheCreateAndLeavesNothing) {
  // The engine is asked for the image before anything else.
  ASSERT_TRUE(create(kMounted, mounting(source_)).has_value());
  replace_source();
  expect_failed("mount source " + source_.string() + " was replaced");
  expect_nothing_left();
  EXPECT_FALSE(ask_resume(kMounted).has_value());
}

TEST_F(MountsTest, WhatTheGuestFindsInsteadOfTheSourceEndsTheCreateBeforeAnythingRuns) {
  guests_.script.alters_preparation = [](guest::v1::Prepared& prepared) {
    prepared.mutable_mounts(0)->set_inode(prepared.mounts(0).inode() + 1);
  };
  int orders = 0;
  isolation_.on_verification = [&] { ++orders; };
  ASSERT_TRUE(create(kMounted, mounting(source_)).has_value());
  expect_failed("mount target /workspace does not show " + source_.string());
  EXPECT_EQ(orders, 0);  // which comes before go
  expect_nothing_left();
}

TEST_F(MountsTest, AGuestThatDoesNotReportAMountIsNotBelieved) {
  for (const auto& [id, lie] : std::map<std::string, std::function<void(guest::v1::Prepared&)>>{
           {"silent-1", [](guest::v1::Prepared& prepared) { prepared.clear_mounts(); }},
           {"failed-1", [](guest::v1::Prepared& prepared) {
              prepared.mutable_mounts(0)->set_failure("Permission denied");
            }}}) {
    guests_.script.alters_preparation = lie;
    ASSERT_TRUE(create(id, mounting(source_)).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle(id).error_code(), kChanged) << id;
  }
  expect_nothing_left();
}

TEST_F(MountsTest, AResumeShowsTheSameFilesOrFails) {
  create_ready(kMounted, mounting(source_));
  stop_sandbox(kMounted);
  replace_source();
  ASSERT_TRUE(ask_resume(kMounted).has_value());
  expect_failed("was replaced");
  EXPECT_FALSE(primary(kMounted).is_running());
  // It is the sandbox's own again: nothing else was lost.
  restore_source();
  ASSERT_TRUE(ask_resume(kMounted).has_value());
  wait_for_state(kMounted, v1::SANDBOX_STATE_READY);
}

TEST_F(MountsTest, AResumeWhoseGuestFindsAnotherFileStopsItsContainer) {
  create_ready(kMounted, mounting(source_));
  stop_sandbox(kMounted);
  guests_.script.alters_preparation = [](guest::v1::Prepared& prepared) {
    prepared.mutable_mounts(0)->set_device(1);
  };
  ASSERT_TRUE(ask_resume(kMounted).has_value());
  expect_failed("does not show");
  EXPECT_FALSE(primary(kMounted).is_running());
}

TEST_F(MountsTest, ARestartShowsTheSameFilesOrFailsAtOnce) {
  create_ready(kMounted, mounting(source_));
  replace_source();
  end_container();
  run_until([&] { return restarts().next() || state(kMounted) == v1::SANDBOX_STATE_FAILED; });
  clock_.advance(1min);
  restarts().call_due();
  expect_failed("was replaced");
  EXPECT_FALSE(primary(kMounted).is_running());
  EXPECT_FALSE(restarts().next().has_value());
}

TEST_F(MountsTest, TheNextDaemonComparesWithWhatThisOneAccepted) {
  ASSERT_TRUE(failpoint::arm("create.mounts.before=hold"));
  ASSERT_TRUE(create(kMounted, mounting(source_)).has_value());
  wait_held_at("create.mounts.before");
  crash();
  disarm();
  replace_source();
  start();
  expect_failed("was replaced");
  expect_nothing_left();
}

}  // namespace
}  // namespace agbox
