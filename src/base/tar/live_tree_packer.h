// SPDX-License-Identifier: Apache-2.0
// Packs a file, a directory or a symbolic link as a tar stream, while other processes may change
// it. Below the path no symbolic link is followed, and no FIFO, socket or device is opened. Memory
// is bounded. The stream has one root, all entries are it or below it.
//
// What a program that runs may do to its files at any time is no failure: what vanishes is left
// out, of a file that grows the beginning is packed, one that shrinks is filled with zeros. FIFOs,
// sockets and devices are left out, and so are mounted filesystems of the kernel, such as /proc.
// Everything but vanished entries is reported.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/tar/tree_counts.h"

namespace agbox {

// What differs from the tree, for people.
struct TreeNotes {
  std::uint64_t count = 0;
  std::string first{};  // its path and what is different

  bool operator==(const TreeNotes&) const = default;
};

struct PackedTree {
  TreeCounts counts{};
  TreeNotes notes{};
};

// Takes all of the bytes, or ends the packing with its error.
using TarSink = std::function<Result<>(std::string_view bytes)>;

// The path is not empty. The root is named as the last component of the path. It is "." if the path
// is "/" or ends with "/." or "/..". A path that ends with a slash, "/." or "/.." must be a
// directory or a link to one; otherwise a link is packed as a link.
Result<PackedTree> pack_live_tree(const std::string& path, const TreeLimits& limits,
                                  const TarSink& sink, const TreeProgress& progress = {});

}  // namespace agbox
