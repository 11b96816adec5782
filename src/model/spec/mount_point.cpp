// SPDX-License-Identifier: Apache-2.0
#include "model/spec/mount_point.h"

#include <charconv>
#include <sstream>

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

bool is_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::vector<std::string> between_commas(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return words;
}

}  // namespace

std::optional<MountPoint> mount_point_of(std::string_view path, std::string_view mountinfo) {
  std::optional<MountPoint> nearest;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, device, root, directory, options, field;
    words >> id >> parent >> device >> root >> directory >> options;
    while (words >> field && field != "-") {  // any number of optional fields
    }
    std::string filesystem, source, super_options;
    if (!(words >> filesystem >> source >> super_options)) continue;
    directory = unescaped(directory);
    if (!is_below(path, directory)) continue;
    // A later mount at the same place lies over the earlier one.
    if (nearest && nearest->directory.size() > directory.size()) continue;
    nearest = MountPoint{.directory = std::move(directory),
                         .filesystem = std::move(filesystem),
                         .options = between_commas(super_options)};
  }
  return nearest;
}

}  // namespace agbox
