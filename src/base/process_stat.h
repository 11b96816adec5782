// SPDX-License-Identifier: Apache-2.0
// What /proc/<pid>/stat says of a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace agbox {

struct ProcessStat {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start_ticks = 0;  // since boot; a pid is used again, with another start

  bool operator==(const ProcessStat&) const = default;
};

// nullopt if the text is not complete.
std::optional<ProcessStat> parse_process_stat(std::string_view text);

// nullopt if the process does not exist.
std::optional<ProcessStat> read_process_stat(pid_t pid);

}  // namespace agbox
