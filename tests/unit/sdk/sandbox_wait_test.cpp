// SPDX-License-Identifier: Apache-2.0
#include <agbox/sandbox_wait.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using test::ScriptedDaemon;
using testing::ElementsAre;
using testing::StartsWith;

v1::SandboxHandle handle(v1::SandboxState state, std::uint64_t sequence) {
  v1::SandboxHandle sandbox;
  sandbox.set_sandbox_id("s-one");
  sandbox.set_state(state);
  sandbox.set_last_event_sequence(sequence);
  return sandbox;
}

v1::SandboxEvent event(std::uint64_t sequence, v1::EventType type, v1::SandboxState state) {
  v1::SandboxEvent out;
  out.set_sandbox_id("s-one");
  out.set_sequence(sequence);
  out.set_event_type(type);
  out.set_sandbox_state(state);
  return out;
}

v1::SandboxEvent failed_event(std::uint64_t sequence, const std::string& code,
                              const std::string& message) {
  auto out = event(sequence, v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  out.mutable_sandbox_phase()->set_error_code(code);
  out.mutable_sandbox_phase()->set_error_message(message);
  return out;
}

grpc::Status not_found() {
  return test::ErrorInfoBytes{.code = grpc::NOT_FOUND,
                              .message = "sandbox s-one was not found",
                              .reason = "SANDBOX_NOT_FOUND",
                              .metadata = {{"sandbox_id", "s-one"}}}
      .status();
}

class SandboxWait : public RawClientTest {
 protected:
  Result<void> wait(SandboxGoal goal, WaitOptions options = {}) {
    options.follow.first_delay = std::chrono::milliseconds(1);
    return wait_for_sandbox(client(), "s-one", goal, options);
  }

  std::string failure(SandboxGoal goal) {
    const auto outcome = wait(goal);
    EXPECT_FALSE(outcome.has_value());
    if (outcome) return "";
    EXPECT_EQ(outcome.error().kind, ErrorKind::SandboxFailed);
    EXPECT_EQ(outcome.error().sandbox_id(), "s-one");
    return outcome.error().message;
  }
};

TEST_F(SandboxWait, AStateThatIsReachedAlreadyNeedsNoEvents) {
  const std::pair<SandboxGoal, v1::SandboxState> rows[] = {
      {SandboxGoal::Ready, v1::SANDBOX_STATE_READY},
      {SandboxGoal::Resumed, v1::SANDBOX_STATE_READY},
      {SandboxGoal::Stopped, v1::SANDBOX_STATE_STOPPED},
      {SandboxGoal::Deleted, v1::SANDBOX_STATE_DELETED}};
  ScriptedDaemon daemon(socket());
  for (const auto& [goal, state] : rows) {
    daemon.sandbox = handle(state, 7);
    EXPECT_TRUE(wait(goal).has_value());
  }
  const std::string get = "GetSandbox sandbox_id: \"s-one\"";
  EXPECT_THAT(daemon.calls(), ElementsAre(get, get, get, get));
}

TEST_F(SandboxWait, FollowsTheEventsBehindTheBaselineAndShowsThem) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
  daemon.events = {event(1, v1::SANDBOX_ACCEPTED, v1::SANDBOX_STATE_PENDING),
                   event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING),
                   event(3, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY)};
  daemon.keep_streams_open = true;
  std::vector<std::uint64_t> seen;
  const auto outcome =
      wait(SandboxGoal::Ready,
           {.on_event = [&](const v1::SandboxEvent& shown) { seen.push_back(shown.sequence()); }});
  EXPECT_TRUE(outcome.has_value());
  EXPECT_THAT(seen, ElementsAre(2, 3));
  EXPECT_THAT(daemon.calls().back(),
              "SubscribeSandboxEvents sandbox_id: \"s-one\" from_sequence: 1");
}

TEST_F(SandboxWait, ASandboxThatIsDoneAlreadyWasReady) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_STOPPED, 5);
  daemon.events = {event(3, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY),
                   event(4, v1::SANDBOX_STOP_REQUESTED, v1::SANDBOX_STATE_READY),
                   event(5, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED)};
  daemon.keep_streams_open = true;
  EXPECT_EQ(failure(SandboxGoal::Ready), "sandbox s-one entered Stopped state before ready");
  EXPECT_TRUE(
      wait(SandboxGoal::Ready, {.baseline = handle(v1::SANDBOX_STATE_PENDING, 2)}).has_value());
}

TEST_F(SandboxWait, EventsWithoutAStateDecideNothing) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_READY, 4);
  daemon.events = {event(5, v1::SANDBOX_STOP_REQUESTED, v1::SANDBOX_STATE_UNSPECIFIED),
                   event(6, v1::EXEC_CANCELLED, v1::SANDBOX_STATE_READY),
                   event(7, v1::SANDBOX_STOPPED, v1::SANDBOX_STATE_STOPPED)};
  daemon.keep_streams_open = true;
  EXPECT_TRUE(wait(SandboxGoal::Stopped).has_value());
}

TEST_F(SandboxWait, AFailedCreateIsToldWithItsReason) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
  daemon.keep_streams_open = true;
  daemon.events = {failed_event(2, "SANDBOX_CREATE_FAILED", "no such image")};
  EXPECT_EQ(failure(SandboxGoal::Ready), "sandbox s-one failed: no such image");
  daemon.events = {failed_event(2, "SANDBOX_CREATE_FAILED", "")};
  EXPECT_EQ(failure(SandboxGoal::Ready), "sandbox s-one failed: SANDBOX_CREATE_FAILED");
  daemon.events = {failed_event(2, "", "")};
  EXPECT_EQ(failure(SandboxGoal::Ready), "sandbox s-one failed: unknown error");
}

TEST_F(SandboxWait, ADeleteThatEndsFailedDoesNotWaitForEver) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_DELETING, 5);
  daemon.events = {failed_event(6, "SANDBOX_DELETE_FAILED", "the engine refused")};
  daemon.keep_streams_open = true;
  EXPECT_EQ(failure(SandboxGoal::Deleted), "sandbox s-one failed: the engine refused");

  daemon.sandbox = handle(v1::SANDBOX_STATE_FAILED, 6);
  daemon.sandbox.set_error_message("it failed before anybody looked");
  EXPECT_EQ(failure(SandboxGoal::Deleted), "sandbox s-one failed: it failed before anybody looked");
}

TEST_F(SandboxWait, AnotherWayOutEndsTheWait) {
  struct Row {
    SandboxGoal goal;
    v1::SandboxState state;
    const char* message;
  };
  const Row rows[] = {
      {SandboxGoal::Ready, v1::SANDBOX_STATE_STOPPED,
       "sandbox s-one entered Stopped state before ready"},
      {SandboxGoal::Ready, v1::SANDBOX_STATE_DELETING,
       "sandbox s-one entered Deleting state before ready"},
      {SandboxGoal::Ready, v1::SANDBOX_STATE_DELETED,
       "sandbox s-one entered Deleted state before ready"},
      {SandboxGoal::Resumed, v1::SANDBOX_STATE_STOPPED,
       "sandbox s-one entered Stopped state before ready"},
      {SandboxGoal::Resumed, v1::SANDBOX_STATE_DELETING,
       "sandbox s-one was deleted while waiting for resume"},
      {SandboxGoal::Stopped, v1::SANDBOX_STATE_DELETING,
       "sandbox s-one was deleted while waiting for stop"},
      {SandboxGoal::Stopped, v1::SANDBOX_STATE_DELETED,
       "sandbox s-one was deleted while waiting for stop"},
  };
  ScriptedDaemon daemon(socket());
  for (const Row& row : rows) {
    daemon.sandbox = handle(row.state, 3);
    EXPECT_EQ(failure(row.goal), row.message);
  }
}

TEST_F(SandboxWait, ASandboxThatIsGoneCountsAsDeletedAndAsNothingElse) {
  ScriptedDaemon daemon(socket());
  daemon.status = not_found();
  EXPECT_TRUE(wait(SandboxGoal::Deleted).has_value());
  const auto ready = wait(SandboxGoal::Ready);
  ASSERT_FALSE(ready.has_value());
  EXPECT_EQ(ready.error().kind, ErrorKind::SandboxNotFound);
}

TEST_F(SandboxWait, AHistoryThatIsRemovedWhileWeWaitCountsAsDeleted) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_DELETING, 5);
  daemon.stream_status = not_found();
  EXPECT_TRUE(wait(SandboxGoal::Deleted).has_value());
}

TEST_F(SandboxWait, ARestartOfTheDaemonIsWaitedOut) {
  auto daemon = std::make_unique<ScriptedDaemon>(socket());
  daemon->sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
  daemon->events = {event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING)};
  daemon->keep_streams_open = true;
  const auto prepare = [](ScriptedDaemon& restarted) {
    restarted.events = {event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING),
                        event(3, v1::SANDBOX_READY, v1::SANDBOX_STATE_READY)};
    restarted.keep_streams_open = true;
  };
  std::thread restart;
  std::vector<std::uint64_t> seen;
  const auto outcome = wait(SandboxGoal::Ready, {.on_event = [&](const v1::SandboxEvent& shown) {
                              seen.push_back(shown.sequence());
                              if (shown.sequence() != 2) return;
                              restart = std::thread([&] {
                                daemon.reset();
                                daemon = std::make_unique<ScriptedDaemon>(socket(), prepare);
                              });
                            }});
  restart.join();
  EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_THAT(seen, ElementsAre(2, 3));
  EXPECT_THAT(daemon->calls(),
              testing::Contains("SubscribeSandboxEvents sandbox_id: \"s-one\" from_sequence: 2"));
}

TEST_F(SandboxWait, ADaemonThatDoesNotComeBackIsGivenUpWithItsReason) {
  auto daemon = std::make_unique<ScriptedDaemon>(socket());
  daemon->sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
  daemon->events = {event(2, v1::SANDBOX_PREPARING, v1::SANDBOX_STATE_PENDING)};
  daemon->keep_streams_open = true;
  std::thread end;
  const auto outcome = wait(SandboxGoal::Ready,
                            {.follow = {.attempts = 3}, .on_event = [&](const v1::SandboxEvent&) {
                               end = std::thread([&] { daemon.reset(); });
                             }});
  end.join();
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().kind, ErrorKind::Unreachable);
  EXPECT_THAT(outcome.error().message,
              StartsWith("sandbox event stream closed unexpectedly: could not reconnect in 3 "
                         "attempts: agboxd is not running"));
}

TEST_F(SandboxWait, AStreamThatEndsAgainAndAgainIsGivenUp) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
  const auto outcome = wait(SandboxGoal::Ready, {.follow = {.attempts = 2}});
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().message,
            "sandbox event stream closed unexpectedly: could not reconnect in 2 attempts");
  const auto calls = daemon.calls();
  const auto is_stream = [](const std::string& call) { return call.starts_with("Subscribe"); };
  EXPECT_EQ(std::ranges::count_if(calls, is_stream), 3);  // the stream, and two attempts more
}

TEST_F(SandboxWait, ADaemonThatIsRestartedAtTheFirstQuestionIsWaitedFor) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_READY, 1);
  daemon.next_statuses = {{grpc::UNAVAILABLE, "Socket closed"}};
  const auto outcome = wait(SandboxGoal::Ready);
  EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
}

TEST_F(SandboxWait, AnyOtherRefusalEndsTheWaitAtOnce) {
  ScriptedDaemon daemon(socket());
  daemon.sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
  daemon.stream_status = grpc::Status(grpc::RESOURCE_EXHAUSTED, "too many streams");
  const auto outcome = wait(SandboxGoal::Ready);
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().message, "too many streams");
}

TEST_F(SandboxWait, AStopEndsTheWaitInTheStreamAndInAPause) {
  for (const bool in_stream : {true, false}) {
    ScriptedDaemon daemon(socket());
    daemon.sandbox = handle(v1::SANDBOX_STATE_PENDING, 1);
    daemon.keep_streams_open = in_stream;
    std::stop_source source;
    std::thread stopper([&] {
      EXPECT_TRUE(daemon.wait_for_call("SubscribeSandboxEvents"));
      source.request_stop();
    });
    const FollowOptions follow{.stop = source.get_token(), .first_delay = std::chrono::hours(1)};
    const auto outcome =
        wait_for_sandbox(client(), "s-one", SandboxGoal::Ready, {.follow = follow});
    stopper.join();
    ASSERT_FALSE(outcome.has_value());
    EXPECT_EQ(outcome.error().kind, ErrorKind::Cancelled);
  }
}

}  // namespace
}  // namespace agbox::sdk
