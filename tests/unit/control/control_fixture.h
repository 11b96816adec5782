// SPDX-License-Identifier: Apache-2.0
// The whole control plane as the daemon puts it together, on a real store and against FakeDocker
// with living guests, driven by the test's own thread. It can be stopped and started again on the
// same store; a plane that is stopped at a failpoint leaves store, engine and link directories
// exactly as a crash there would.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/control_plane.h"
#include "engine/docker/docker_engine.h"
#include "guestlink/sha256.h"
#include "place/local/local_place.h"
#include "store/store.h"
#include "support/fake_docker/fake_docker.h"
#include "support/manual_clock.h"
#include "unit/control/living_guests.h"
#include "unit/place/fake_isolation.h"
#include "unit/temp_directory.h"

namespace agbox {

class ControlTest : public testing::Test {
 protected:
  using LabelMap = std::map<std::string, std::string>;

  ControlTest();
  ~ControlTest() override;

  // --- the daemon's life ---
  void start();
  void stop();
  // An end that nobody asked for: what the daemon would store at its end is not stored.
  void crash();
  void restart() {
    stop();
    start();
  }
  bool is_running() const { return plane_ != nullptr; }
  void wait_for_engine() {
    run_until([&] { return plane_->engine().has_value(); });
  }
  void wait_for_loss_of_engine() {
    run_until([&] { return !plane_->engine().has_value(); });
  }
  Directory& directory() { return plane_->directory(); }
  LocalPlace& place() { return *place_; }
  Store& store() { return *store_; }
  Deadlines& restarts() { return plane_->restarts(); }
  Deadlines& exec_waits() { return plane_->exec_waits(); }
  Deadlines& exec_timeouts() { return plane_->exec_timeouts(); }
  Deadlines& verifications() { return plane_->verifications(); }
  Janitor& janitor() { return plane_->janitor(); }
  const std::vector<UnknownPrimary>& unknown_primaries() const {
    return docker_engine_->unknown_primaries();
  }
  IsolationHealth isolation_health() { return plane_->isolation(); }
  ControlPlane& plane() { return *plane_; }
  Result<v1::DiagnoseResponse> diagnose(const std::vector<std::string>& images = {});
  // Until the engine is here and orphans were looked for.
  void wait_swept() {
    run_until([&] { return janitor().sweeps() > 0 && !janitor().is_sweeping(); });
  }

  // Runs the loop until it holds; a test that waits in vain fails.
  void run_until(const std::function<bool()>& holds);
  // Everything that can be done without waiting for time or for another thread.
  void run_until_idle();
  // What the store reports, as that a change is on disk, waits for release_store() or stop().
  void hold_store() { holds_store_ = true; }
  void release_store();
  std::size_t held_reports() const { return held_.size(); }
  // Until all that was told to the store so far is on disk and shown.
  void settle();

  // --- what clients ask for ---
  static SandboxSpec spec(const LabelMap& labels = {}, const std::string& image = "busybox");
  // With a file of this machine, which exists from then on.
  SandboxSpec spec_with_copy(const std::string& target = "/workspace/copied.txt");
  Result<v1::SandboxHandle> create(const std::string& id, SandboxSpec wanted = spec());
  void create_ready(const std::string& id, SandboxSpec wanted = spec());
  Result<> ask_stop(const std::string& id);
  Result<> ask_resume(const std::string& id);
  // Accepted, and done.
  void stop_sandbox(const std::string& id);
  void resume_sandbox(const std::string& id);
  Result<> remove(const std::string& id);
  v1::SandboxHandle handle(const std::string& id) { return directory().get(id).value(); }
  v1::SandboxState state(const std::string& id) { return handle(id).state(); }
  void wait_for_state(const std::string& id, v1::SandboxState state);
  std::vector<std::string> listed(const v1::ListSandboxesRequest& request = {});

  struct Seen {
    v1::SandboxEvent event;
    std::string bytes;
    bool is_replay;
    bool is_snapshot;
  };
  // Everything a new subscription has to say by now.
  std::vector<Seen> events(const std::string& id, std::uint64_t from = 0,
                           bool with_snapshot = false);
  std::vector<v1::EventType> event_types(const std::string& id);

  // --- failpoints ---
  // A create, or delete, that waits at the failpoint.
  void create_held_at(const std::string& id, const std::string& failpoint);
  void remove_held_at(const std::string& id, const std::string& failpoint);
  void wait_held_at(const std::string& failpoint);
  static void disarm();
  // The failpoints that a whole life passes, whose names begin like one of these. All that the
  // source has: from then on all subnets but one are somebody else's, so that a create comes by
  // those too that are for a refused one.
  std::vector<std::string> failpoints_of_a_lifecycle(const std::vector<std::string>& prefixes);
  std::vector<std::string> create_failpoints() {
    return failpoints_of_a_lifecycle({"create.", "start."});
  }

  // --- what is left ---
  std::vector<std::string> link_directories() const;
  std::filesystem::path link_root() const {
    return temp_directory_.path() / "state/links" / guestlink::sha256_of(instance_).substr(0, 16);
  }
  std::vector<std::string> network_names();  // without those of occupy_all_subnets_but_the_last()
  void expect_nothing_left();

  FakeDocker& docker() { return docker_; }
  fake::Engine& engine() { return docker_.engine(); }
  const fake::Container& primary(const std::string& id);
  // By somebody else.
  void start_by_hand(const std::string& id);
  // With networks of the engine that no route of this host shows. So whatever is tried first is
  // refused.
  void occupy_all_subnets_but_the_last();

  // As the daemon does before its server waits for the calls under way.
  void release_waiting_calls() { plane_->release_waiting_calls(); }

  std::string store_vfs_;  // of SQLite; empty: the system's
  ControlLoop loop_;
  ManualClock clock_;
  TempDirectory temp_directory_;
  FakeDocker docker_;
  LivingGuests guests_;
  FakeIsolation isolation_;
  StoreOptions store_options();
  // A client's call, and its answer.
  Result<> answer_of(const std::function<void(Directory::Reply<void>)>& call);
  std::string instance_;  // of the store, as long as it is
  std::uint64_t ballast_bytes_ = 4096;
  std::string state_root_ = "state";
  std::string address_pool_ = "10.99.0.0/24";
  std::string resolver_ = "192.0.2.53";
  std::vector<std::filesystem::path> resolver_files_;
  std::filesystem::path home_;  // of the daemon's user
  std::filesystem::path lock_file_;
  TimesToLive ttls_;
  std::chrono::milliseconds first_answer_timeout_ = std::chrono::hours(1);  // no test is so slow
  EnginePatience patience_;
  bool pauses_unisolated_ = true;
  std::string exec_output_template_ = "{sandbox_id}/{exec_id}";
  std::uint64_t exec_output_max_ = std::uint64_t{4} << 30;

 private:
  bool holds_store_ = false;
  std::vector<std::function<void()>> held_;
  std::shared_ptr<bool> is_alive_;  // callbacks of a daemon that has ended run nowhere
  std::unique_ptr<Store> store_;
  std::unique_ptr<DockerEngine> docker_engine_;
  std::unique_ptr<LocalPlace> place_;
  std::unique_ptr<ControlPlane> plane_;
};

}  // namespace agbox
