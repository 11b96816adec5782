// SPDX-License-Identifier: Apache-2.0
// How an exec ended, as its guest reports it: a hostile one may report anything of its own execs.
#pragma once

#include <cstdint>
#include <string>

namespace agbox {

struct ExecEnd {
  enum class How { Exited, Signaled, NotStarted, Cancelled, RunnerLost };
  std::string exec_id;
  How how = How::Exited;
  int code = 0;  // Exited: 0 to 255, Signaled: the signal's number, NotStarted: 126 or 127, else 0
  std::string detail;  // one sentence, if how and code do not say enough
  bool output_truncated = false;
  std::uint64_t user_cpu_microseconds = 0;
  std::uint64_t system_cpu_microseconds = 0;
  std::uint64_t peak_memory_bytes = 0;

  bool operator==(const ExecEnd&) const = default;
};

}  // namespace agbox
