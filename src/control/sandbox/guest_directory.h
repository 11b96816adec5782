// SPDX-License-Identifier: Apache-2.0
// The directory through which the guest of a running container reconnects.
#pragma once

#include "model/guest/guest_error.h"

namespace agbox {

enum class GuestDirectory {
  Usable,
  Unreachable,  // for now, as when its disk is not mounted; adopted at the next inspection
  Gone,
};

inline GuestDirectory directory_after(const GuestResult<>& reconnected) {
  if (reconnected) return GuestDirectory::Usable;
  return reconnected.error().kind() == GuestErrorKind::Unavailable ? GuestDirectory::Unreachable
                                                                   : GuestDirectory::Gone;
}

}  // namespace agbox
