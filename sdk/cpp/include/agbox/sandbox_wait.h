// SPDX-License-Identifier: Apache-2.0
// Waits until a sandbox is ready, stopped or deleted: its state as the baseline, then every event
// behind it, so that nothing is missed and nothing is polled. A restart of the daemon is waited
// out.
#pragma once

#include <agbox/event_follower.h>

#include <functional>
#include <string>

namespace agbox::sdk {

// What a caller of create, resume, stop or delete waits for. Resumed is ready too, in other words
// where it is not reached.
enum class SandboxGoal { Ready, Resumed, Stopped, Deleted };

struct WaitOptions {
  FollowOptions follow = {};
  // Sees each event on the way, on the waiting thread.
  std::function<void(const v1::SandboxEvent&)> on_event = {};
};

// An error of kind SandboxFailed: the sandbox went where the goal does not follow any more. A
// sandbox that is gone altogether counts as deleted.
Result<void> wait_for_sandbox(const RawClient& client, const std::string& sandbox_id,
                              SandboxGoal goal, const WaitOptions& options = {});

}  // namespace agbox::sdk
