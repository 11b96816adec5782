// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/colored_patch.h"

#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

constexpr std::string_view kPlain = "\x1b[m";
constexpr std::string_view kBold = "\x1b[1m";
constexpr std::string_view kRed = "\x1b[31m";
constexpr std::string_view kGreen = "\x1b[32m";
constexpr std::string_view kCyan = "\x1b[36m";

// Empty: the terminal's own. A hunk's lines begin with one of "+- \".
std::string_view color_of(std::string_view line, bool is_in_hunk) {
  if (line.starts_with("@@")) return kCyan;
  if (!is_in_hunk) return kBold;
  if (line.starts_with('+')) return kGreen;
  if (line.starts_with('-')) return kRed;
  return {};
}

}  // namespace

std::string colored_patch(std::string_view patch, bool has_colors) {
  std::string out;
  bool is_in_hunk = false;
  while (!patch.empty()) {
    const std::size_t end = patch.find('\n');
    const std::string_view line = patch.substr(0, end);
    patch.remove_prefix(end == std::string_view::npos ? patch.size() : end + 1);
    if (line.starts_with("diff --git ")) is_in_hunk = false;
    if (line.starts_with("@@")) is_in_hunk = true;
    const std::string_view color = has_colors ? color_of(line, is_in_hunk) : std::string_view();
    out += color;
    out += printable(line);
    if (!color.empty()) out += kPlain;
    out += '\n';
  }
  return out;
}

}  // namespace agbox::cli
