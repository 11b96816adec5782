// SPDX-License-Identifier: Apache-2.0
#include "model/copy/gitignore.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ranges>
#include <utility>

namespace agbox {
namespace {

// foo/bar*.x belongs to this directory: a slash after a character that is neither slash nor plus,
// and *. after it.
bool is_anchored_by_star(std::string_view text) {
  for (std::size_t slash = 1; slash < text.size(); ++slash) {
    if (text[slash] != '/' || text[slash - 1] == '/' || text[slash - 1] == '+') continue;
    return text.substr(slash + 1).contains("*.");
  }
  return false;
}

// Bytes: a class of characters outside of ASCII matches none.
bool class_has(std::string_view members, char c) {
  const bool is_negated = members.starts_with('^');
  if (is_negated) members.remove_prefix(1);
  bool has = false;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i + 2 < members.size() && members[i + 1] == '-') {
      has |= members[i] <= c && c <= members[i + 2];
      i += 2;
    } else {
      has |= members[i] == c;
    }
  }
  return has != is_negated;
}

}  // namespace

Gitignore::Gitignore(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with('#')) continue;
    while (line.starts_with(' ')) line.remove_prefix(1);
    while (line.ends_with(' ')) line.remove_suffix(1);
    if (line.empty() || line == "!" || line == "/") continue;
    lines_.push_back(parse(line));
  }
}

Gitignore::Line Gitignore::parse(std::string_view text) {
  Line line;
  if (text.starts_with('!')) {
    line.is_negated = true;
    text.remove_prefix(1);
  }
  if (text.starts_with("\\#") || text.starts_with("\\!")) text.remove_prefix(1);
  line.is_anchored = text.starts_with('/') || is_anchored_by_star(text);
  if (text.starts_with("/**/")) line.is_anchored = false;
  if (text.starts_with('/')) text.remove_prefix(1);
  line.is_directory = text.ends_with('/');

  using Kind = Piece::Kind;
  const auto add = [&](Kind kind, std::size_t length, std::string_view value = {}) {
    if (kind == Kind::Literal && !line.pieces.empty() && line.pieces.back().kind == Kind::Literal) {
      line.pieces.back().text += value;
    } else {
      line.pieces.push_back({.kind = kind, .text = std::string(value)});
    }
    text.remove_prefix(length);
  };
  while (!text.empty()) {
    const std::size_t class_end = text.find(']', 2);
    if (text.starts_with("/**/")) {
      add(Kind::Between, 4);
    } else if (text.starts_with("**/")) {
      add(Kind::AnythingBefore, 3);
    } else if (text.starts_with("/**")) {
      add(Kind::AnythingBelow, 3);
    } else if (text[0] == '*') {
      add(Kind::WithinName, 1);
    } else if (text[0] == '[' && class_end != std::string_view::npos) {
      add(Kind::Class, class_end + 1, text.substr(1, class_end - 1));
    } else if (text[0] == '\\' && text.size() > 1) {
      add(Kind::Literal, 2, text.substr(1, 1));
    } else {
      add(Kind::Literal, 1, text.substr(0, 1));
    }
  }
  return line;
}

// From the places in `path` where what precedes the piece may end, those where it may end itself.
std::vector<bool> Gitignore::step(const Piece& piece, std::string_view path,
                                  const std::vector<bool>& from) {
  std::vector<bool> to(path.size() + 1, false);
  // The first place from which something has been passed on.
  bool within_name = false;
  bool after_slash = false;  // a slash was passed: anything may follow
  std::size_t began = 0;
  for (std::size_t at = 0; at <= path.size(); ++at) {
    const std::string_view rest = path.substr(at);
    switch (piece.kind) {
      case Piece::Kind::Literal:
        if (from[at] && rest.starts_with(piece.text)) to[at + piece.text.size()] = true;
        break;
      case Piece::Kind::Class:
        if (from[at] && !rest.empty() && class_has(piece.text, rest[0])) to[at + 1] = true;
        break;
      case Piece::Kind::WithinName:
        within_name = from[at] || (within_name && path[at - 1] != '/');
        to[at] = within_name;
        break;
      case Piece::Kind::Between:
        if (from[at] && rest.starts_with('/')) {
          to[at + 1] = true;
          if (!after_slash) began = at + 1;
          after_slash = true;
        }
        // At least one character between both slashes.
        if (after_slash && at > began && rest.starts_with('/')) to[at + 1] = true;
        break;
      case Piece::Kind::AnythingBefore:
        if (from[at]) {
          to[at] = true;
          after_slash = true;
        }
        if (after_slash && rest.starts_with('/')) to[at + 1] = true;
        break;
      case Piece::Kind::AnythingBelow:
        if (after_slash) to[at] = true;
        if (from[at]) {
          to[at] = true;
          if (rest.starts_with('/')) after_slash = true;
        }
        break;
    }
  }
  return to;
}

bool Gitignore::matches(const Line& line, std::string_view path) {
  std::vector<bool> places(path.size() + 1, false);
  places[0] = true;
  if (!line.is_anchored) {
    for (std::size_t at = 0; at < path.size(); ++at) places[at + 1] = path[at] == '/';
  }
  for (const Piece& piece : line.pieces) {
    places = step(piece, path, places);
    if (std::ranges::none_of(places, std::identity())) return false;
  }
  for (std::size_t at = 0; at <= path.size(); ++at) {
    if (!places[at]) continue;
    if (line.is_directory || at == path.size() || path[at] == '/') return true;
  }
  return false;
}

bool Gitignore::matches(std::string_view path) const {
  for (const Line& line : lines_ | std::views::reverse) {
    if (matches(line, path)) return !line.is_negated;
  }
  return false;
}

}  // namespace agbox
