// SPDX-License-Identifier: Apache-2.0
#include "ingress/tree_links.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <ranges>
#include <utility>

namespace agbox {
namespace {

constexpr int kMaxLinks = 40;  // as the kernel

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> components;
  for (const auto part : path | std::views::split('/')) {
    const std::string_view component(part.begin(), part.end());
    if (!component.empty() && component != ".") components.emplace_back(component);
  }
  return components;
}

std::string join_path(const std::vector<std::string>& components) {
  std::string path;
  for (const std::string& component : components) path += (path.empty() ? "" : "/") + component;
  return path;
}

}  // namespace

TreeLinks::TreeLinks(int root, std::string path) : root_(root), path_(std::move(path)) {
  struct stat status{};
  if (::fstat(root_, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

std::optional<std::string> TreeLinks::target_inside(std::string_view directory,
                                                    std::string_view target) const {
  Components at = split_path(directory);
  if (!target.starts_with('/')) {
    if (!stays_inside(at, target)) return std::nullopt;
    return std::string(target);
  }
  const auto below = below_root(target);
  if (!below || !stays_inside({}, *below)) return std::nullopt;
  std::string relative;
  for (std::size_t i = 0; i < at.size(); ++i) relative += "../";
  relative += *below;
  while (relative.ends_with('/')) relative.pop_back();
  return relative.empty() ? "." : relative;
}

// What follows the root in an absolute path. By identity: the tree may have been opened by another
// path than the one that the link has.
std::optional<std::string> TreeLinks::below_root(std::string_view absolute) const {
  const Components components = split_path(absolute);
  if (!path_.empty()) {
    const Components root = split_path(path_);
    const auto [rest, missing] = std::ranges::mismatch(components, root);
    if (missing != root.end()) return std::nullopt;
    return join_path({rest, components.end()});
  }
  std::string prefix = "/";
  for (std::size_t i = 0;; ++i) {
    struct stat status{};
    ++lookups_;
    if (::fstatat(AT_FDCWD, prefix.c_str(), &status, AT_NO_AUTOMOUNT) != 0) return std::nullopt;
    if (status.st_dev == device_ && status.st_ino == inode_) {
      return join_path({components.begin() + static_cast<long>(i), components.end()});
    }
    if (i == components.size()) return std::nullopt;
    prefix += (prefix.ends_with('/') ? "" : "/") + components[i];
  }
}

// Resolves as the kernel would with this root, component by component.
bool TreeLinks::stays_inside(Components at, std::string_view target) const {
  const Components first = split_path(target);
  std::deque<std::string> left(first.begin(), first.end());
  int links = 0;
  while (!left.empty()) {
    const std::string component = std::move(left.front());
    left.pop_front();
    if (component == "..") {
      if (at.empty()) return false;
      at.pop_back();
      continue;
    }
    at.push_back(component);
    const auto link = link_at(at);
    if (!link) continue;
    if (++links > kMaxLinks) return true;  // a loop leads nowhere
    at.pop_back();
    std::string next = *link;
    if (next.starts_with('/')) {
      const auto below = below_root(next);
      if (!below) return false;
      at.clear();
      next = *below;
    }
    const Components more = split_path(next);
    left.insert(left.begin(), more.begin(), more.end());
  }
  return true;
}

// nullopt if it is not a link, or cannot be read.
std::optional<std::string> TreeLinks::link_at(const Components& path) const {
  std::array<char, PATH_MAX> text;
  const std::string name = join_path(path);
  ++lookups_;
  const ssize_t length = ::readlinkat(root_, name.c_str(), text.data(), text.size());
  if (length < 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace agbox
