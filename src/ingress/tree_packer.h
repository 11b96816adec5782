// SPDX-License-Identifier: Apache-2.0
// Packs a file or a directory of the host as a tar stream, for a sandbox. The tree may be hostile
// and may change while it is read: no symbolic link is followed, no other filesystem is entered, no
// FIFO or device is opened, and memory is bounded. What cannot be packed as it is, is an error that
// names it: a stream with its end is a complete copy.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ingress/stream_writer.h"

namespace agbox {

struct PackLimits {
  std::uint64_t entries = 2'000'000;
  std::uint64_t bytes = std::uint64_t{1} << 40;  // stored: holes of sparse files do not count
  int depth = 128;                               // of directories, each of which is open
  std::uint64_t lookups = 20'000'000;            // to find out where symbolic links lead
  std::chrono::milliseconds stall{60000};        // how long the reader may take nothing
};

enum class TreeUse {
  Copy,
  // Of a builtin tool, whose programs and sandboxes may write to it: a symbolic link that leads out
  // of the tree stays as it is, FIFOs, sockets and devices are left out, and so is what vanishes.
  // Of a file that grows, the beginning is packed; one that shrinks is filled with zeros. What
  // cannot be read, and what is beyond the limits, is left out. Both are reported: if they failed
  // the copy, a sandbox could make the tool unusable for the next one.
  ShadowCopy,
};

struct TreeSource {
  UniqueFd root;     // a directory or a regular file; O_PATH is enough
  std::string path;  // without links; a file's last component is its name in the stream
  std::vector<std::string> exclude_patterns{};
  TreeUse use = TreeUse::Copy;
};

// Of a pack in progress, for another thread.
struct PackProgress {
  std::atomic<std::uint64_t> entries = 0;
  std::atomic<std::uint64_t> bytes = 0;
  std::atomic<std::uint64_t> steps = 0;  // changes as long as the disk and the reader respond
  AbortSignal abort{};
};

// What a shadow copy lacks although it is in a file, directory or link of the tree.
struct SkippedEntries {
  std::uint64_t entries = 0;
  std::string first{};  // its path and the reason, for people
};

// Returns when the stream is complete in the pipe, which is closed either way. CANCELLED if it was
// aborted, READER_GONE if the reader closed the pipe. Blocks.
Result<SkippedEntries> pack_tree(TreeSource source, UniqueFd pipe, const PackLimits& limits,
                                 PackProgress& progress);

}  // namespace agbox
