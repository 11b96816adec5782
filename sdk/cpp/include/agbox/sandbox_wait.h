// SPDX-License-Identifier: Apache-2.0
// Waits until a sandbox is ready, stopped or deleted: reads its state and then follows the events
// after it, without polling and across restarts of the daemon.
#pragma once

#include <agbox/event_follower.h>

#include <functional>
#include <optional>
#include <string>

namespace agbox::sdk {

// The awaited state. Resumed equals Ready, with other error messages.
enum class SandboxGoal { Ready, Resumed, Stopped, Deleted };

struct WaitOptions {
  FollowOptions follow = {};
  // Called for each event, on the waiting thread.
  std::function<void(const v1::SandboxEvent&)> on_event = {};
  // The sandbox as the response to the caller's request shows it: the wait sees everything that
  // happened since. Otherwise it begins with the present state.
  std::optional<v1::SandboxHandle> baseline = {};
};

// Fails with SandboxFailed if the sandbox can no longer reach the goal. A sandbox that does not
// exist counts as deleted.
Result<void> wait_for_sandbox(const RawClient& client, const std::string& sandbox_id,
                              SandboxGoal goal, const WaitOptions& options = {});

}  // namespace agbox::sdk
