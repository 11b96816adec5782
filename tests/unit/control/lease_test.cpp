// SPDX-License-Identifier: Apache-2.0
// What becomes of a sandbox with a lease: with holders, without them, and when the daemon restarts.
// Time is moved by hand.
#include <algorithm>
#include <memory>

#include "base/failpoint.h"
#include "control/upkeep/deadlines.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr const char* kLeased = "leased-1";

class LeaseTest : public ControlTest {
 protected:
  LeaseTest() {
    start();
    wait_swept();
  }

  static SandboxSpec leased(std::int64_t seconds = 10) {
    v1::CreateSpec wanted;
    wanted.set_image("busybox");
    wanted.mutable_lease_ttl()->set_seconds(seconds);
    return parse_create_spec(wanted).value();
  }

  struct Holding {
    std::optional<std::chrono::nanoseconds> lease_ttl;  // once it is confirmed
    std::optional<Result<>> end;
    std::optional<Task> task;
  };
  std::shared_ptr<Holding> ask_hold(const std::string& id = kLeased) {
    auto holding = std::make_shared<Holding>();
    auto on_held = [holding](std::chrono::nanoseconds lease_ttl) -> asio::awaitable<bool> {
      holding->lease_ttl = lease_ttl;
      co_return true;
    };
    holding->task =
        directory().hold(id, on_held, [holding](const Result<>& end) { holding->end = end; });
    return holding;
  }
  std::shared_ptr<Holding> hold(const std::string& id = kLeased) {
    auto holding = ask_hold(id);
    run_until([&] { return holding->lease_ttl.has_value(); });
    return holding;
  }
  void release(const std::shared_ptr<Holding>& holding) {
    holding->task->cancel();
    run_until([&] { return holding->end.has_value(); });
    EXPECT_EQ(holding->end->error().reason(), reason::kCancelled);
  }
  Error refused_hold(const std::string& id = kLeased) {
    const auto holding = ask_hold(id);
    run_until([&] { return holding->end.has_value(); });
    EXPECT_FALSE(holding->lease_ttl.has_value());
    EXPECT_FALSE(holding->end->has_value());
    return holding->end->error();
  }

  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    plane().leases().call_due();
    run_until_idle();
    settle();
  }
  void expect_expired(const std::string& id = kLeased) {
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
    const auto seen = events(id);
    EXPECT_EQ(seen.back().event.event_type(), v1::SANDBOX_DELETED);
    EXPECT_EQ(seen.back().event.sandbox_phase().reason(), "lease_expired");
    EXPECT_EQ(deletions(seen), 1);
    expect_nothing_left();
  }
  static std::ptrdiff_t deletions(const std::vector<Seen>& seen) {
    return std::ranges::count_if(seen, [](const Seen& one) {
      return one.event.event_type() == v1::SANDBOX_DELETE_REQUESTED;
    });
  }
};

TEST_F(LeaseTest, ASandboxThatNobodyHoldsIsDeletedWithTheReason) {
  create_ready(kLeased, leased());
  EXPECT_EQ(handle(kLeased).lease_ttl().seconds(), 10);
  pass(10s - 1ns);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  pass(1ns);
  expect_expired();
  EXPECT_EQ(handle(kLeased).lease_ttl().seconds(), 10);
}

TEST_F(LeaseTest, ASandboxWithoutALeaseIsKept) {
  create_ready("kept-1");
  EXPECT_FALSE(handle("kept-1").has_lease_ttl());
  EXPECT_EQ(plane().leases().next(), std::nullopt);
  const Error error = refused_hold("kept-1");
  EXPECT_EQ(error.reason(), reason::kSandboxHasNoLease);
  EXPECT_EQ(error.message(),
            "sandbox kept-1 has no lease and is kept; lease_ttl of a create gives it one");
  EXPECT_EQ(error.metadata().at("sandbox_id"), "kept-1");
}

TEST_F(LeaseTest, WhileItIsHeldTheLeaseDoesNotRun) {
  create_ready(kLeased, leased());
  pass(9s);
  const auto holding = hold();
  EXPECT_EQ(holding->lease_ttl, 10s);
  pass(1000h);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  release(holding);
  pass(10s - 1ns);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY) << "all of it again";
  pass(1ns);
  expect_expired();
}

TEST_F(LeaseTest, TheLastOfSeveralHoldersCounts) {
  create_ready(kLeased, leased());
  const auto first = hold();
  const auto second = hold();
  release(first);
  pass(1h);
  const auto third = hold();
  release(second);
  pass(1h);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  release(third);
  pass(10s);
  expect_expired();
}

TEST_F(LeaseTest, AClientThatComesBackInTimeKeepsIt) {
  create_ready(kLeased, leased());
  for (int i = 0; i < 3; ++i) {
    release(hold());
    pass(9s);
  }
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
}

// A client that confirms nothing, because it went away in that moment.
TEST_F(LeaseTest, AHoldThatCannotBeConfirmedIsNone) {
  create_ready(kLeased, leased());
  std::optional<Result<>> end;
  auto on_held = [](std::chrono::nanoseconds) -> asio::awaitable<bool> { co_return false; };
  const Task task =
      directory().hold(kLeased, on_held, [&](const Result<>& result) { end = result; });
  run_until([&] { return end.has_value(); });
  pass(10s);
  expect_expired();
}

TEST_F(LeaseTest, ItCoversEveryState) {
  create_ready("stopped-1", leased());
  stop_sandbox("stopped-1");
  create_ready("failed-1", leased());
  engine().answer({.method = "DELETE",
                   .path = "/containers/" + primary("failed-1").id,
                   .query = {{"force", "1"}},
                   .body = {},
                   .registry_auth = {}});
  wait_for_state("failed-1", v1::SANDBOX_STATE_FAILED);
  pass(10s);
  wait_for_state("failed-1", v1::SANDBOX_STATE_DELETED);
  expect_expired("stopped-1");
}

TEST_F(LeaseTest, ACreateInProgressIsCancelled) {
  ASSERT_TRUE(failpoint::arm("create.network.after=hold"));
  ASSERT_TRUE(create(kLeased, leased()).has_value());
  wait_held_at("create.network.after");
  pass(10s);  // the cancel ends the hold, too
  disarm();
  expect_expired();
  EXPECT_EQ(std::ranges::count(event_types(kLeased), v1::SANDBOX_READY), 0);
}

TEST_F(LeaseTest, ARestartStartsItAgain) {
  create_ready(kLeased, leased());
  const auto holding = hold();
  pass(1h);
  crash();
  clock_.advance(1h);  // the daemon's absence is not the clients' doing
  start();
  wait_for_engine();
  pass(10s - 1ns);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  const auto again = hold();
  pass(1h);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  restart();
  wait_for_engine();
  pass(10s);
  expect_expired();
}

TEST_F(LeaseTest, AnExpiryThatWasInterruptedGoesOnWithItsReason) {
  create_ready(kLeased, leased());
  ASSERT_TRUE(failpoint::arm("delete.containers.before=hold"));
  pass(10s);
  wait_held_at("delete.containers.before");
  crash();
  disarm();
  start();
  expect_expired();
}

TEST_F(LeaseTest, WithoutTheEngineItIsDeletedWhenItIsBack) {
  create_ready(kLeased, leased());
  docker().stop_listening();
  wait_for_loss_of_engine();
  pass(10s);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_DELETING);
  docker().listen();
  expect_expired();
}

TEST_F(LeaseTest, ADeleteEndsTheHold) {
  create_ready(kLeased, leased());
  const auto holding = hold();
  ASSERT_TRUE(remove(kLeased).has_value());
  wait_for_state(kLeased, v1::SANDBOX_STATE_DELETED);
  run_until([&] { return holding->end.has_value(); });
  EXPECT_TRUE(holding->end->has_value()) << holding->end->error().message();
  EXPECT_EQ(plane().leases().next(), std::nullopt);
}

TEST_F(LeaseTest, ADeleteThatAClientRequestedKeepsItsReason) {
  create_ready(kLeased, leased());
  const auto holding = hold();
  remove_held_at(kLeased, "delete.containers.before");
  release(holding);
  pass(10s);
  crash();
  disarm();
  start();
  wait_for_state(kLeased, v1::SANDBOX_STATE_DELETED);
  const auto seen = events(kLeased);
  EXPECT_EQ(deletions(seen), 1);
  EXPECT_EQ(seen.back().event.sandbox_phase().reason(), "delete_requested");
  EXPECT_EQ(plane().leases().next(), std::nullopt);
}

TEST_F(LeaseTest, WhatIsBeingDeletedCannotBeHeld) {
  EXPECT_EQ(refused_hold("none-such").reason(), reason::kSandboxNotFound);
  create_ready(kLeased, leased());
  ASSERT_TRUE(failpoint::arm("delete.containers.before=hold"));
  pass(10s);
  wait_held_at("delete.containers.before");
  const Error deleting = refused_hold();
  EXPECT_EQ(deleting.reason(), reason::kSandboxInvalidState);
  EXPECT_THAT(deleting.message(), HasSubstr("leased-1 is being deleted; create another"));
  crash();
  disarm();
  start();
  expect_expired();
  EXPECT_THAT(refused_hold().message(), HasSubstr("leased-1 is deleted; create another"));
}

// Otherwise a crash could undo what was reported to the client.
TEST_F(LeaseTest, ARefusalIsReportedOnceTheExpiryIsOnDisk) {
  create_ready(kLeased, leased());
  hold_store();
  clock_.advance(10s);
  plane().leases().call_due();
  const auto late = ask_hold();
  run_until_idle();
  EXPECT_FALSE(late->end.has_value());
  release_store();
  run_until([&] { return late->end.has_value(); });
  EXPECT_EQ(late->end->error().reason(), reason::kSandboxInvalidState);
  expect_expired();
}

// As after a machine that slept: its clients slept too.
TEST_F(LeaseTest, ADeadlineThatTheDaemonMissedStartsTheLeaseAgain) {
  create_ready(kLeased, leased());
  pass(1h);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  pass(10s - 1ns);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  pass(1ns);
  expect_expired();
}

// Its clients' streams are ended first, and it may take longer than a lease until it ends itself.
TEST_F(LeaseTest, ADaemonThatShutsDownDeletesNothing) {
  create_ready(kLeased, leased(1));
  const auto holding = hold();
  release_waiting_calls();
  release(holding);
  pass(1s);
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
  restart();
  EXPECT_EQ(state(kLeased), v1::SANDBOX_STATE_READY);
}

TEST_F(LeaseTest, TooManyHoldsAreRefused) {
  create_ready(kLeased, leased());
  std::vector<std::shared_ptr<Holding>> all;
  for (std::size_t i = 0; i < maxima::kHolds; ++i) all.push_back(ask_hold());
  run_until([&] { return all.back()->lease_ttl.has_value(); });
  const Error error = refused_hold();
  EXPECT_EQ(error.reason(), reason::kResourceExhausted);
  EXPECT_THAT(error.message(), HasSubstr("at most 8192"));
  release(all.front());
  release(hold());
}

}  // namespace
}  // namespace agbox
