// SPDX-License-Identifier: Apache-2.0
// Looks for symbolic links that lead out of a tree. The tree may be hostile and may change
// meanwhile: no link is followed or resolved, no other filesystem is entered, and the effort is
// bounded.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace agbox {

struct ScanLimits {
  std::uint64_t entries = 1'000'000;
  int depth = 128;                       // of directories, each of which is open
  std::chrono::milliseconds time{2000};  // others wait for the thread meanwhile
};

struct EscapingLinkScan {
  // The path of the first one that was found, below the root. Judged by its text alone, so it may
  // be one that leads through a name and back (`a/../b`) without leaving.
  std::optional<std::string> link;
  // The first part that was not searched, and why; empty if there is none, or if a link was found.
  std::string unsearched;
};

// `root` is a directory, O_PATH is enough, and `path` its path without links. May wait for the disk
// of the tree.
EscapingLinkScan find_escaping_link(int root, const std::string& path,
                                    const ScanLimits& limits = {});

}  // namespace agbox
