// SPDX-License-Identifier: Apache-2.0
// Whether the kernel killed processes of this container for want of memory, as its control group
// counts it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace agbox::guest {

// Where the engine mounts the container's own control group.
inline constexpr const char* kControlGroup = "/sys/fs/cgroup";

class MemoryEvents {
 public:
  // Counts from now on.
  explicit MemoryEvents(std::string control_group = kControlGroup);

  // For the end of an exec that may have been killed for it: a sentence with the number of kills
  // and the limit. Empty if there was none, or if the engine hides the control group. The count is
  // that of the whole container, so it cannot tell which of its processes were killed.
  std::string explain() const;

 private:
  std::string control_group_;
  std::optional<std::uint64_t> kills_before_;
};

}  // namespace agbox::guest
