// SPDX-License-Identifier: Apache-2.0
// The files that hold the output of one exec, sent to the guest along with its order.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace agbox::guestlink {

struct OutputFiles {
  UniqueFd out;  // opened for appending; closed once they are sent
  UniqueFd err;
  std::uint64_t free_space_reserve_bytes = 0;  // of their filesystem
};

}  // namespace agbox::guestlink
