// SPDX-License-Identifier: Apache-2.0
// A tree that a guest unpacks into its container, and what it reports of that. The tree itself
// comes through a pipe.
#pragma once

#include <cstdint>
#include <string>

namespace agbox {

struct TreeOrder {
  // Absolute, inside the container. A slash at its end makes it a directory.
  std::string target;
  // It is one file, which becomes the target itself unless that is a directory.
  bool is_single_file = false;
  // A target that is in a mount, or leads into one, is a failure.
  bool is_outside_mounts = false;
};

struct TreeReport {
  std::string failure;  // one sentence that names the path; empty: all of it was unpacked
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
};

}  // namespace agbox
