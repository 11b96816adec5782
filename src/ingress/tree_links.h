// SPDX-License-Identifier: Apache-2.0
// Where the symbolic links of a tree lead: inside it, or outside. Links are only read, none is
// followed by the kernel.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace agbox {

class TreeLinks {
 public:
  // `root` is a descriptor of the tree's root directory and must outlive this. An absolute target
  // is inside if it leads to the root by any path; with `path`, the only one that counts, no file
  // outside is inspected: a hostile link may name one on a disk that hangs.
  explicit TreeLinks(int root, std::string path = {});

  // The target to store for a link in `directory`, a path below the root: `target` itself, or a
  // relative one for an absolute path into the tree. nullopt if the link leads outside, if only by
  // way of other links. One that leads nowhere inside is inside.
  std::optional<std::string> target_inside(std::string_view directory,
                                           std::string_view target) const;

  // How many files were inspected for that until now.
  std::uint64_t lookups() const { return lookups_; }

 private:
  using Components = std::vector<std::string>;
  std::optional<std::string> below_root(std::string_view absolute) const;
  bool stays_inside(Components at, std::string_view target) const;
  std::optional<std::string> link_at(const Components& path) const;

  int root_;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  mutable std::uint64_t lookups_ = 0;
};

}  // namespace agbox
