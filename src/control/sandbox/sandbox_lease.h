// SPDX-License-Identifier: Apache-2.0
// The lease of a sandbox: how many clients hold it, and when it ends once none does. Only its TTL
// is stored, in the sandbox's specification. So a later daemon starts every lease again, and the
// clients get that long to come back.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "base/clock.h"
#include "control/actor_services.h"

namespace agbox {

class SandboxLease {
 public:
  // Without a TTL the sandbox has no lease, and nothing here has an effect.
  SandboxLease(ActorServices& services, std::string sandbox_id,
               std::optional<std::chrono::nanoseconds> ttl);
  SandboxLease(const SandboxLease&) = delete;

  const std::optional<std::chrono::nanoseconds>& ttl() const { return ttl_; }

  // The sandbox was accepted, or restored: a client has that long to hold it.
  void start();
  void add_holder();
  void remove_holder();
  // The sandbox is deleted.
  void end();
  // Set then. A client may wait for it longer than the sandbox exists.
  const std::shared_ptr<Event>& ended() const { return ended_; }

  // Call when the deadline has passed. False if that was noticed too late: the lease starts again.
  bool has_expired();

 private:
  ActorServices& services_;
  std::string sandbox_id_;
  std::optional<std::chrono::nanoseconds> ttl_;
  std::size_t holders_ = 0;
  BootTime expires_at_{0};
  std::shared_ptr<Event> ended_;
};

}  // namespace agbox
