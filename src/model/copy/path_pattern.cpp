// SPDX-License-Identifier: Apache-2.0
#include "model/copy/path_pattern.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/utf8.h"

namespace agbox {
namespace {

struct Character {
  std::uint32_t code = 0xFFFD;
  std::size_t bytes = 1;
  bool is_valid = false;
};

// Of a non-empty text.
Character character_of(std::string_view text) {
  const std::size_t length = utf8_length(text);
  if (length == 0) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::uint32_t code = byte(0);
  if (length > 1) code = byte(0) & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3FU);
  return {.code = code, .bytes = length, .is_valid = true};
}

// One end of a range in a class, taken from the front of `chunk`; nullopt if malformed.
std::optional<std::uint32_t> take_class_character(std::string_view& chunk) {
  if (chunk.empty() || chunk[0] == '-' || chunk[0] == ']') return std::nullopt;
  if (chunk[0] == '\\') {
    chunk.remove_prefix(1);
    if (chunk.empty()) return std::nullopt;
  }
  const Character character = character_of(chunk);
  if (!character.is_valid) return std::nullopt;
  chunk.remove_prefix(character.bytes);
  if (chunk.empty()) return std::nullopt;  // the class does not end
  return character.code;
}

// Takes the class after its [ from `chunk`, and returns whether it has `code`; nullopt if
// malformed.
std::optional<bool> take_class(std::string_view& chunk, std::uint32_t code) {
  const bool is_negated = chunk.starts_with('^');
  if (is_negated) chunk.remove_prefix(1);
  bool has_code = false;
  for (bool is_first = true; is_first || !chunk.starts_with(']'); is_first = false) {
    const auto low = take_class_character(chunk);
    if (!low) return std::nullopt;
    auto high = low;
    if (chunk.starts_with('-')) {
      chunk.remove_prefix(1);
      high = take_class_character(chunk);
      if (!high) return std::nullopt;
    }
    if (*low <= code && code <= *high) has_code = true;
  }
  chunk.remove_prefix(1);
  return has_code != is_negated;
}

struct ChunkMatch {
  bool is_malformed = false;
  std::optional<std::string_view> rest{};  // of the text; nullopt if the chunk does not match
};

// A part of a pattern without *, at the front of `text`. After a mismatch it only checks the rest
// of the chunk.
ChunkMatch match_chunk(std::string_view chunk, std::string_view text) {
  bool matches = true;
  while (!chunk.empty()) {
    if (text.empty()) matches = false;
    if (chunk[0] == '[') {
      chunk.remove_prefix(1);
      const Character character = matches ? character_of(text) : Character{};
      const auto is_in_class = take_class(chunk, character.code);
      if (!is_in_class) return {.is_malformed = true};
      if (matches) text.remove_prefix(character.bytes);
      matches = matches && *is_in_class;
      continue;
    }
    if (chunk[0] == '?') {
      chunk.remove_prefix(1);
      matches = matches && text[0] != '/';
      if (matches) text.remove_prefix(character_of(text).bytes);
      continue;
    }
    if (chunk[0] == '\\') {
      chunk.remove_prefix(1);
      if (chunk.empty()) return {.is_malformed = true};
    }
    matches = matches && chunk[0] == text[0];
    if (matches) text.remove_prefix(1);
    chunk.remove_prefix(1);
  }
  if (!matches) return {};
  return {.is_malformed = false, .rest = text};
}

struct Chunk {
  bool after_star = false;
  std::string_view text;  // up to the next * outside of a class
};

Chunk take_chunk(std::string_view& pattern) {
  Chunk chunk;
  while (pattern.starts_with('*')) {
    pattern.remove_prefix(1);
    chunk.after_star = true;
  }
  bool in_class = false;
  std::size_t end = 0;
  for (; end < pattern.size(); ++end) {
    if (pattern[end] == '\\' && end + 1 < pattern.size())
      ++end;
    else if (pattern[end] == '[')
      in_class = true;
    else if (pattern[end] == ']')
      in_class = false;
    else if (pattern[end] == '*' && !in_class)
      break;
  }
  chunk.text = pattern.substr(0, end);
  pattern.remove_prefix(end);
  return chunk;
}

// Without **.
bool matches_plain(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    const Chunk chunk = take_chunk(pattern);
    if (chunk.after_star && chunk.text.empty()) return !path.contains('/');
    const bool is_last = pattern.empty();
    // After a star the chunk may begin anywhere before the next slash. The first place is the best
    // one: what follows has a star of its own.
    std::optional<std::string_view> rest;
    for (std::size_t skipped = 0; skipped <= path.size(); ++skipped) {
      const ChunkMatch match = match_chunk(chunk.text, path.substr(skipped));
      if (match.is_malformed) return false;
      if (match.rest && (!is_last || match.rest->empty())) {
        rest = match.rest;
        break;
      }
      if (!chunk.after_star || skipped == path.size() || path[skipped] == '/') break;
    }
    if (!rest) return false;
    path = *rest;
  }
  return path.empty();
}

std::vector<std::string_view> components_of(std::string_view path) {
  std::vector<std::string_view> components;
  while (true) {
    const std::size_t slash = path.find('/');
    components.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return components;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

bool is_path_pattern(std::string_view pattern) {
  while (!pattern.empty()) {
    if (match_chunk(take_chunk(pattern).text, {}).is_malformed) return false;
  }
  return true;
}

bool matches_path(std::string_view pattern, std::string_view path) {
  if (!is_path_pattern(pattern)) return false;
  const auto patterns = components_of(pattern);
  bool has_any_depth = false;
  for (const std::string_view component : patterns) has_any_depth |= component == "**";
  if (!has_any_depth) return matches_plain(pattern, path);

  // As for stars in a component: on a mismatch, the last ** takes one more.
  const auto parts = components_of(path);
  std::size_t at = 0;
  std::size_t part = 0;
  std::optional<std::size_t> after_any_depth;
  std::size_t retry_from = 0;
  while (part < parts.size()) {
    if (at < patterns.size() && patterns[at] == "**") {
      after_any_depth = ++at;
      retry_from = part;
    } else if (at < patterns.size() && matches_plain(patterns[at], parts[part])) {
      ++at;
      ++part;
    } else if (after_any_depth) {
      at = *after_any_depth;
      part = ++retry_from;
    } else {
      return false;
    }
  }
  while (at < patterns.size() && patterns[at] == "**") ++at;
  return at == patterns.size();
}

}  // namespace agbox
