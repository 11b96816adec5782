// SPDX-License-Identifier: Apache-2.0
// Unpacks a tar stream at a path, with the usual rules of copy commands for where it goes. The
// stream is hostile input, and other processes may change the target meanwhile: below the target no
// symbolic link is followed, so nothing is written elsewhere. Files belong to this process's user,
// without setuid and setgid bits; symbolic links are created as they are and lead wherever they
// say. Hard links, devices, absolute names and ".." are refused.
//
// A file is replaced as a whole, or stays what it was. A tree that fails halfway stays, up to the
// entry that the error names. Existing directories keep their attributes.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "base/tar/tar_reader.h"
#include "base/tar/tree_counts.h"

namespace agbox {

enum class TreePlacement {
  // The stream has one root: a file, a symbolic link, or a directory with everything else below it.
  // If the target is a directory, the root goes into it. Otherwise it becomes the target, whose
  // parent must exist: a file replaces a file, a directory must be new.
  Root,
  // All entries go into the target, a directory, which is created if only it is missing.
  Content,
};

struct UnpackTarget {
  std::string path;  // links in it are followed; a slash at its end makes it a directory
  TreePlacement placement = TreePlacement::Root;
  // The name of the root if it goes into a directory. Empty: as the stream has it, and the content
  // of a root "." goes into the target. A stream of untrusted origin must not choose which files of
  // the target it replaces.
  std::string root_name{};
  // A target that is a symbolic link to a directory is refused, unless a slash at its end says that
  // the link is meant: an earlier stream of untrusted origin may have made it.
  bool refuses_link = false;
  // The mode bits of files and directories that are kept.
  mode_t kept_bits = 01777;
};

// Blocks. An error names the path and how many entries were unpacked before.
Result<TreeCounts> unpack_at(const UnpackTarget& target, const TreeLimits& limits,
                             TarReader::Source stream, const TreeProgress& progress = {});

}  // namespace agbox
