// SPDX-License-Identifier: Apache-2.0
#include "ingress/tree_links.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <ranges>
#include <utility>

#include "base/open_beneath.h"

namespace agbox {
namespace {

constexpr int kMaxLinks = 40;                // as the kernel
constexpr std::size_t kBytesPerLookup = 16;  // of a path: the kernel walks it name by name

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

// What follows the root in an absolute path.
std::optional<std::vector<std::string>> below_root(std::string_view root,
                                                   std::string_view absolute) {
  const auto components = split_path(absolute);
  const auto above = split_path(root);
  const auto [rest, missing] = std::ranges::mismatch(components, above);
  if (missing != above.end()) return std::nullopt;
  return std::vector<std::string>(rest, components.end());
}

std::string relative_from(std::size_t depth, const std::vector<std::string>& below) {
  std::string relative;
  for (std::size_t i = 0; i < depth; ++i) relative += "../";
  relative += join_path(below);
  while (relative.ends_with('/')) relative.pop_back();
  return relative.empty() ? "." : relative;
}

// Up at most `depth` times, and from there only down.
bool goes_up_then_down(const std::vector<std::string>& target, std::size_t depth) {
  const auto down = std::ranges::find_if(target, [](const auto& name) { return name != ".."; });
  return std::cmp_less_equal(down - target.begin(), depth) &&
         std::find(down, target.end(), "..") == target.end();
}

}  // namespace

std::optional<std::string> target_inside_by_text(std::string_view root, std::string_view directory,
                                                 std::string_view target) {
  const std::size_t depth = split_path(directory).size();
  if (!target.starts_with('/')) {
    if (!goes_up_then_down(split_path(target), depth)) return std::nullopt;
    return std::string(target);
  }
  const auto below = below_root(root, target);
  if (!below || !goes_up_then_down(*below, 0)) return std::nullopt;
  return relative_from(depth, *below);
}

TreeLinks::TreeLinks(int root, std::string path, std::uint64_t max_lookups)
    : root_(root), path_(std::move(path)), max_lookups_(max_lookups) {}

auto TreeLinks::target_inside(std::string_view directory, std::string_view target)
    -> std::expected<std::optional<std::string>, Exhausted> {
  Components at = split_path(directory);
  std::string stored(target);
  if (target.starts_with('/')) {
    const auto below = below_root(path_, target);
    if (!below) return std::nullopt;
    stored = relative_from(at.size(), *below);
  }
  const auto is_inside = stays_inside(std::move(at), stored);
  if (!is_inside) return std::unexpected(is_inside.error());
  if (!*is_inside) return std::nullopt;
  return stored;
}

// Resolves as the kernel would with this root, component by component.
auto TreeLinks::stays_inside(Components at, std::string_view target)
    -> std::expected<bool, Exhausted> {
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
    if (lookups_ >= max_lookups_) return std::unexpected(Exhausted{});
    const auto link = link_at(at);
    if (!link) continue;
    if (++links > kMaxLinks) return true;  // a loop leads nowhere
    at.pop_back();
    Components next = split_path(*link);
    if (link->starts_with('/')) {
      auto below = below_root(path_, *link);
      if (!below) return false;
      at.clear();
      next = std::move(*below);
    }
    left.insert(left.begin(), next.begin(), next.end());
  }
  return true;
}

// nullopt if it is not a link, or cannot be read. Its parent may be swapped for a link meanwhile.
std::optional<std::string> TreeLinks::link_at(const Components& path) {
  const std::string parent = join_path({path.begin(), path.end() - 1});
  lookups_ += 1 + parent.size() / kBytesPerLookup;
  const UniqueFd directory =
      open_beneath(root_, parent.empty() ? "." : parent.c_str(), O_PATH | O_DIRECTORY, kInTree);
  if (!directory) return std::nullopt;
  std::array<char, PATH_MAX> text;
  const ssize_t length =
      ::readlinkat(directory.get(), path.back().c_str(), text.data(), text.size());
  if (length < 0) return std::nullopt;
  lookups_ += static_cast<std::size_t>(length) / kBytesPerLookup;
  return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace agbox
