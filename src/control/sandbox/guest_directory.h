// SPDX-License-Identifier: Apache-2.0
// The directory through which the guest of a running container reconnects.
#pragma once

#include "control/sandbox/operations/operation.h"
#include "control/services.h"
#include "model/guest/guest_error.h"

namespace agbox {

enum class GuestDirectory {
  Usable,
  Unreachable,  // for now, as when its disk is not mounted; adopted at the next inspection
  Gone,
};

// Listens for the guest that an earlier run of the daemon started. It connects by itself.
GuestResult<> adopt_guest(Services& services, const SandboxFacts& facts);

GuestDirectory directory_after(const GuestResult<>& adopted);

}  // namespace agbox
