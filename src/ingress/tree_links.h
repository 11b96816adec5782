// SPDX-License-Identifier: Apache-2.0
// Where the symbolic links of a tree lead: inside it, or outside. Links are only read, none is
// followed by the kernel, and no file outside is inspected: a hostile link may name one on a disk
// that hangs.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace agbox {

// The target to store for a link in `directory`, a path below the root: `target` itself, or a
// relative one for an absolute path that begins with `root`, the path of the tree. nullopt if it
// leads outside, or through a name and back (`a/..`): where that leads depends on what the name is.
// If no link of a tree is nullopt, none leads out by way of others. Inspects no file.
std::optional<std::string> target_inside_by_text(std::string_view root, std::string_view directory,
                                                 std::string_view target);

// Resolves them, for a limited effort.
class TreeLinks {
 public:
  struct Exhausted {};  // the effort, before there was an answer

  // `root` is a descriptor of the tree's root directory and must outlive this. Only absolute
  // targets that begin with `path` are in the tree.
  TreeLinks(int root, std::string path, std::uint64_t max_lookups);

  // As target_inside_by_text(), but nullopt is: the link leads outside, if only by way of other
  // links. One that leads nowhere inside is inside.
  std::expected<std::optional<std::string>, Exhausted> target_inside(std::string_view directory,
                                                                     std::string_view target);

  // How many files were inspected for that until now; a long path counts as several.
  std::uint64_t lookups() const { return lookups_; }

 private:
  using Components = std::vector<std::string>;
  std::expected<bool, Exhausted> stays_inside(Components at, std::string_view target);
  std::optional<std::string> link_at(const Components& path);

  int root_;
  std::string path_;
  std::uint64_t max_lookups_;
  std::uint64_t lookups_ = 0;
};

}  // namespace agbox
