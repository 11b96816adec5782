// SPDX-License-Identifier: Apache-2.0
#include <agbox/sandbox_hold.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

class SandboxHoldTest : public RawClientTest {
 protected:
  std::ptrdiff_t hold_calls() const {
    return std::ranges::count(daemon_.calls(), "HoldSandbox sandbox_id: \"box-1\"");
  }

  test::ScriptedDaemon daemon_{socket()};
};

TEST_F(SandboxHoldTest, HoldsUntilItIsDestroyed) {
  const RawClient used = client();
  {
    const SandboxHold hold(used, "box-1");
    EXPECT_TRUE(hold.wait_until_held().has_value());
    EXPECT_TRUE(daemon_.wait_for_holds(1));
    EXPECT_TRUE(hold.wait_until_held().has_value()) << "again";
  }
  EXPECT_TRUE(daemon_.wait_for_holds(0));
  EXPECT_EQ(hold_calls(), 1);
}

TEST_F(SandboxHoldTest, ComesBackToADaemonThatWasRestarted) {
  const RawClient used = client();
  const SandboxHold hold(used, "box-1");
  for (int times = 1; times <= 3; ++times) {
    ASSERT_TRUE(daemon_.wait_for_holds(1));
    EXPECT_EQ(hold_calls(), times);
    daemon_.end_holds();
    ASSERT_TRUE(daemon_.wait_for_holds(0));
  }
  EXPECT_TRUE(daemon_.wait_for_holds(1));
}

TEST_F(SandboxHoldTest, ADaemonThatIsNotReachableYetIsWaitedFor) {
  daemon_.hold_statuses = {{grpc::UNAVAILABLE, "not yet"}, {grpc::UNAVAILABLE, "not yet"}};
  const RawClient used = client();
  const SandboxHold hold(used, "box-1");
  EXPECT_TRUE(hold.wait_until_held().has_value());
  EXPECT_EQ(hold_calls(), 3);
}

TEST_F(SandboxHoldTest, ARefusalIsReportedAndNotRepeated) {
  daemon_.hold_statuses = {test::ErrorInfoBytes{.code = grpc::FAILED_PRECONDITION,
                                                .message = "sandbox box-1 has no lease",
                                                .reason = "SANDBOX_HAS_NO_LEASE"}
                               .status()};
  const RawClient used = client();
  const SandboxHold hold(used, "box-1");
  const auto held = hold.wait_until_held();
  ASSERT_FALSE(held.has_value());
  EXPECT_EQ(held.error().reason, "SANDBOX_HAS_NO_LEASE");
  EXPECT_EQ(hold_calls(), 1);
}

TEST_F(SandboxHoldTest, ASandboxThatIsDeletedEndsIt) {
  daemon_.hold_statuses = {grpc::Status::OK};
  const RawClient used = client();
  const SandboxHold hold(used, "box-1");
  const auto held = hold.wait_until_held();
  ASSERT_FALSE(held.has_value());
  EXPECT_EQ(held.error().kind, ErrorKind::SandboxFailed);
  EXPECT_EQ(held.error().message, "sandbox box-1 was deleted");
}

TEST_F(SandboxHoldTest, AWaitThatIsStoppedLeavesTheHold) {
  daemon_.hold_statuses = {{grpc::UNAVAILABLE, "not yet"}};
  const RawClient used = client();
  const SandboxHold hold(used, "box-1");
  std::stop_source stop;
  stop.request_stop();
  const auto held = hold.wait_until_held(stop.get_token());
  if (!held) EXPECT_EQ(held.error().kind, ErrorKind::Cancelled);
  EXPECT_TRUE(daemon_.wait_for_holds(1));
}

}  // namespace
}  // namespace agbox::sdk
