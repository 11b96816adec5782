// SPDX-License-Identifier: Apache-2.0
// Whether the isolation of sandboxes is as it should be, for people.
#pragma once

#include <cstdint>
#include <string>

namespace agbox {

struct IsolationHealth {
  // One sentence while something is wrong; empty if all is in place.
  std::string shortcoming{};
  // How often a change by another process was undone since the start, and the latest one.
  std::uint64_t repairs = 0;
  std::string last_repair{};
};

}  // namespace agbox
