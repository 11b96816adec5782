// SPDX-License-Identifier: Apache-2.0
// The process at the other end of a guest's connection, for as long as the machine runs: a pid
// alone is reused.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace agbox {

struct PeerProcess {
  pid_t pid = 0;                 // 0 if the engine's processes are not visible to us
  std::uint64_t start_time = 0;  // in clock ticks since boot; 0 if unknown

  // Whether both can be the same process; what is unknown on one side contradicts nothing.
  bool may_be(const PeerProcess& other) const {
    if (pid == 0 || other.pid == 0) return true;
    if (pid != other.pid) return false;
    return start_time == 0 || other.start_time == 0 || start_time == other.start_time;
  }
  bool operator==(const PeerProcess&) const = default;
};

}  // namespace agbox
