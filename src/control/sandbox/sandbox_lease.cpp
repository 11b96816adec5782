// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/sandbox_lease.h"

#include <utility>

namespace agbox {
namespace {

using namespace std::chrono_literals;

// Later than this, the daemon did not run when the lease was to end: the machine slept, or the
// process was suspended. No client could reach it then.
constexpr auto kPunctual = 1s;

}  // namespace

SandboxLease::SandboxLease(ActorServices& services, std::string sandbox_id,
                           std::optional<std::chrono::nanoseconds> ttl)
    : services_(services),
      sandbox_id_(std::move(sandbox_id)),
      ttl_(ttl),
      ended_(std::make_shared<Event>(services.loop.io().get_executor())) {}

void SandboxLease::start() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (!ttl_ || ended_->is_set()) return;
  expires_at_ = services_.clock.boot_now() + *ttl_;
  services_.leases.set(sandbox_id_, expires_at_);
}

void SandboxLease::add_holder() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  ++holders_;
  services_.leases.clear(sandbox_id_);
}

void SandboxLease::remove_holder() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (--holders_ == 0) start();
}

void SandboxLease::end() {
  services_.leases.clear(sandbox_id_);
  ended_->set();
}

bool SandboxLease::has_expired() {
  if (services_.clock.boot_now() - expires_at_ <= kPunctual) return true;
  start();
  return false;
}

}  // namespace agbox
