// SPDX-License-Identifier: Apache-2.0
#include "model/spec/mount_point.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "base/path_within.h"

namespace agbox {
namespace {

// The kernel writes a space as \040, and so every character that would break the line.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const bool is_escape = text[i] == '\\' && i + 3 < text.size() &&
                           std::from_chars(text.data() + i + 1, text.data() + i + 4, code, 8).ptr ==
                               text.data() + i + 4;
    if (is_escape) i += 3;
    plain += is_escape ? static_cast<char>(code) : text[i];
  }
  return plain;
}

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

}  // namespace

std::vector<MountPoint> parse_mountinfo(std::string_view mountinfo) {
  std::vector<MountPoint> mounts;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    MountPoint mount;
    std::string parent, options, field;
    words >> mount.id >> parent >> mount.device >> mount.root >> mount.directory >> options;
    while (words >> field && field != "-") {  // any number of optional fields
    }
    std::string source, super_options;
    if (!(words >> mount.filesystem >> source >> super_options)) continue;
    mount.root = unescaped(mount.root);
    mount.directory = unescaped(mount.directory);
    mount.options = between_commas(super_options);
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<MountPoint> mount_point_of(std::string_view path, std::string_view mountinfo) {
  std::optional<MountPoint> nearest;
  for (MountPoint& mount : parse_mountinfo(mountinfo)) {
    if (!is_path_within(path, mount.directory)) continue;
    if (nearest && nearest->directory.size() > mount.directory.size()) continue;
    nearest = std::move(mount);
  }
  return nearest;
}

FileLocation location_on(const MountPoint& mount, std::string_view path) {
  if (mount.directory != "/") path.remove_prefix(std::min(path.size(), mount.directory.size()));
  const std::string root = mount.root == "/" ? "" : mount.root;
  const std::string whole = root + (path == "/" ? "" : std::string(path));
  return {.device = mount.device, .path = whole.empty() ? "/" : whole};
}

bool is_within(const FileLocation& inner, const FileLocation& outer) {
  return inner.device == outer.device && is_path_within(inner.path, outer.path);
}

}  // namespace agbox
