// SPDX-License-Identifier: Apache-2.0
// Looks for symbolic links that lead out of a tree. The tree may be hostile and may change
// meanwhile: no link is followed, no other filesystem is entered, and the effort is bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace agbox {

struct ScanLimits {
  std::uint64_t entries = 1'000'000;
  std::uint64_t lookups = 4'000'000;  // to resolve links
  int depth = 128;                    // of directories, each of which is open
};

// The path of the first one that is found, below the root; nullopt if there is none. `root` is a
// directory, O_PATH is enough, and `path` its path without links. An error says what of the tree
// prevents an answer, and begins with its path. May wait for the disk of the tree.
Result<std::optional<std::string>> find_escaping_link(int root, const std::string& path,
                                                      const ScanLimits& limits = {});

}  // namespace agbox
