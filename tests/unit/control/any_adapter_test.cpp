// SPDX-License-Identifier: Apache-2.0
// The life of a sandbox, the same on every pair of adapters: Docker's with this machine, and a pair
// that has neither containers, networks, directories nor descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/control_plane.h"
#include "model/exec/exec_request.h"
#include "model/object_names.h"
#include "store/store.h"
#include "support/manual_clock.h"
#include "support/memory/memory_engine.h"
#include "support/memory/memory_place.h"
#include "unit/control/control_fixture.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

class DockerWorld : public ControlTest {
 protected:
  bool has_exec(const std::string& id, const std::string& exec_id) {
    return guests_.exec(primary_container_name(id), exec_id) != nullptr;
  }
  void end_exec(const std::string& id, const std::string& exec_id, int exit_code) {
    guests_.end_exec(primary_container_name(id), exec_id, exit_code);
  }
  void lose_workload(const std::string& id) {
    engine().end_container(*engine().find_container(primary_container_name(id)), 1);
  }
  std::size_t workloads() { return engine().containers.size(); }
};

class MemoryWorld : public testing::Test {
 protected:
  MemoryWorld() { set_log_level(LogLevel::Error); }
  ~MemoryWorld() override {
    if (plane_) stop();
    set_log_level(LogLevel::Info);
  }

  void start() {
    auto post = [this, alive = std::weak_ptr(alive_)](std::function<void()> callback) {
      loop_.post([alive, callback = std::move(callback)] {
        if (!alive.expired()) callback();
      });
    };
    auto store = Store::open({.path = temp_directory_.path() / "ids.db",
                              .post = std::move(post),
                              .clock = clock_,
                              .log = {},
                              .ballast_bytes = 4096});
    ASSERT_TRUE(store.has_value()) << store.error().message();
    store_ = std::move(*store);
    engine_ = std::make_unique<MemoryEngine>(machine_);
    place_ = std::make_unique<MemoryPlace>(loop_.io().get_executor(), machine_);
    ControlOptions options;
    options.created_with.add_dns("192.0.2.53");
    auto plane = ControlPlane::start(loop_, *store_, clock_, *engine_, *place_, std::move(options),
                                     Logger());
    ASSERT_TRUE(plane.has_value()) << plane.error().message();
    plane_ = std::move(*plane);
  }
  void stop() {
    bool has_ended = false;
    plane_->shut_down([&] { has_ended = true; });
    run_until([&] { return has_ended; });
    plane_.reset();
    place_.reset();
    engine_.reset();
    store_.reset();
  }

  Directory& directory() { return plane_->directory(); }
  void run_until(const std::function<bool()>& holds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!holds()) {
      if (loop_.io().run_one_until(end) == 0) throw std::runtime_error("waited in vain");
    }
  }
  bool has_exec(const std::string& id, const std::string& exec_id) {
    const MemoryWorkload* workload = machine_.find(id);
    return workload != nullptr && workload->execs.contains(exec_id);
  }
  void end_exec(const std::string& id, const std::string& exec_id, int exit_code) {
    place_->of(id).end_exec({.exec_id = exec_id, .code = exit_code, .detail = {}});
  }
  void lose_workload(const std::string& id) { machine_.end(id); }
  std::size_t workloads() const { return machine_.workloads.size(); }

 private:
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  ControlLoop loop_;
  ManualClock clock_;
  TempDirectory temp_directory_;
  MemoryMachine machine_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<MemoryEngine> engine_;
  std::unique_ptr<MemoryPlace> place_;
  std::unique_ptr<ControlPlane> plane_;
};

template <class World>
class AnyAdapterTest : public World {
 protected:
  template <class T>
  Result<T> answer(const std::function<void(std::function<void(Result<T>)>)>& call) {
    std::optional<Result<T>> answered;
    call([&](Result<T> result) { answered = std::move(result); });
    this->run_until([&] { return answered.has_value(); });
    return std::move(*answered);
  }
  v1::SandboxState state(const std::string& id) {
    return this->directory().get(id).value().state();
  }
  void wait_for(const std::string& id, v1::SandboxState wanted) {
    this->run_until([&] { return state(id) == wanted; });
  }
  void create_ready(const std::string& id) {
    v1::CreateSpec spec;
    spec.set_image("busybox");
    auto parsed = parse_create_spec(spec);
    ASSERT_TRUE(parsed.has_value());
    const auto created = answer<v1::SandboxHandle>(
        [&](auto reply) { this->directory().create(std::move(*parsed), id, std::move(reply)); });
    ASSERT_TRUE(created.has_value()) << created.error().message();
    wait_for(id, v1::SANDBOX_STATE_READY);
  }
  Result<> stop_it(const std::string& id) {
    return answer<void>([&](auto reply) { this->directory().stop(id, std::move(reply)); });
  }
  Result<> resume_it(const std::string& id) {
    return answer<void>([&](auto reply) { this->directory().resume(id, std::move(reply)); });
  }
  Result<> delete_it(const std::string& id) {
    return answer<void>([&](auto reply) { this->directory().remove(id, std::move(reply)); });
  }
  void begin_exec(const std::string& id, const std::string& exec_id) {
    v1::CreateExecRequest request;
    request.set_sandbox_id(id);
    request.set_exec_id(exec_id);
    request.add_command("work");
    const auto created = answer<v1::CreateExecResponse>([&](auto reply) {
      this->directory().create_exec(id, parse_exec_request(request), std::move(reply));
    });
    ASSERT_TRUE(created.has_value()) << created.error().message();
    this->run_until([&] { return this->has_exec(id, exec_id); });
  }
  v1::ExecStatus ended_exec(const std::string& exec_id) {
    v1::ExecStatus status;
    this->run_until([&] {
      status = answer<v1::ExecStatus>([&](auto reply) {
                 this->directory().get_exec(exec_id, std::move(reply));
               }).value();
      return status.state() != v1::EXEC_STATE_RUNNING;
    });
    return status;
  }
};

using Worlds = testing::Types<DockerWorld, MemoryWorld>;
TYPED_TEST_SUITE(AnyAdapterTest, Worlds);

TYPED_TEST(AnyAdapterTest, ASandboxLivesFromCreateToDelete) {
  this->start();
  this->create_ready("box-1");
  EXPECT_EQ(this->workloads(), 1U);

  this->begin_exec("box-1", "exec-1");
  this->end_exec("box-1", "exec-1", 3);
  const v1::ExecStatus ended = this->ended_exec("exec-1");
  EXPECT_EQ(ended.state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(ended.exit_code(), 3);
  this->run_until([&] { return !this->has_exec("box-1", "exec-1"); });  // the guest forgot it

  this->begin_exec("box-1", "exec-2");
  ASSERT_TRUE(this->stop_it("box-1"));
  this->wait_for("box-1", v1::SANDBOX_STATE_STOPPED);
  EXPECT_EQ(this->ended_exec("exec-2").state(), v1::EXEC_STATE_CANCELLED);

  ASSERT_TRUE(this->resume_it("box-1"));
  this->wait_for("box-1", v1::SANDBOX_STATE_READY);
  this->begin_exec("box-1", "exec-3");
  this->end_exec("box-1", "exec-3", 0);
  EXPECT_EQ(this->ended_exec("exec-3").state(), v1::EXEC_STATE_FINISHED);

  ASSERT_TRUE(this->delete_it("box-1"));
  this->wait_for("box-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(this->workloads(), 0U);
}

TYPED_TEST(AnyAdapterTest, ADaemonThatStartsAgainContinues) {
  this->start();
  this->create_ready("box-1");
  this->begin_exec("box-1", "exec-1");
  this->stop();
  this->start();
  this->wait_for("box-1", v1::SANDBOX_STATE_READY);
  this->run_until([&] { return this->has_exec("box-1", "exec-1"); });
  this->end_exec("box-1", "exec-1", 0);
  EXPECT_EQ(this->ended_exec("exec-1").state(), v1::EXEC_STATE_FINISHED);
  ASSERT_TRUE(this->delete_it("box-1"));
  this->wait_for("box-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(this->workloads(), 0U);
}

TYPED_TEST(AnyAdapterTest, AWorkloadThatEndsTakesItsExecsWithIt) {
  this->start();
  this->create_ready("box-1");
  this->begin_exec("box-1", "exec-1");
  this->lose_workload("box-1");
  const v1::ExecStatus ended = this->ended_exec("exec-1");
  EXPECT_EQ(ended.state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(ended.error_code(), "CONTAINER_EXITED");
  ASSERT_TRUE(this->delete_it("box-1"));
  this->wait_for("box-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(this->workloads(), 0U);
}

}  // namespace
}  // namespace agbox
