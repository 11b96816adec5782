// SPDX-License-Identifier: Apache-2.0
// Stores a tree of files as a commit of a GitStore, from a tar stream: nothing of it becomes a file
// of this machine on the way. The stream is untrusted. Directories named .git are left out, with
// everything in them, and so are empty directories, which git does not know.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tar/tar_reader.h"
#include "base/tar/tree_counts.h"
#include "cli/workspace/git.h"

namespace agbox::cli {

struct TreeImport {
  std::string reference;  // becomes the commit
  // Paths that are left out; with a directory, everything below it.
  std::function<bool(std::string_view path)> is_left_out = {};
  TreeLimits limits = {.entries = 1'000'000, .bytes = std::uint64_t{8} << 30};
};

struct ImportedTree {
  TreeCounts counts = {};
  // Path and content of every .gitignore.
  std::map<std::string, std::string> ignore_files = {};
};

Result<ImportedTree> import_tree(const GitStore& store, const TreeImport& options,
                                 TarReader::Source source);

// The tree of commit `base` without some paths.
Result<> commit_without(const GitStore& store, const std::string& base,
                        const std::vector<std::string>& paths, const std::string& reference);

// A path as `git fast-import` reads it.
std::string quoted_path(std::string_view path);

}  // namespace agbox::cli
