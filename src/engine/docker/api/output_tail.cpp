// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/output_tail.h"

#include <algorithm>

#include "base/hex.h"
#include "base/utf8.h"

namespace agbox {
namespace {

bool is_inside_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// At most `limit` bytes, and no part of a character at the beginning.
std::string_view utf8_suffix(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return text;
  text.remove_prefix(text.size() - limit);
  while (!text.empty() && is_inside_character(text.front())) text.remove_prefix(1);
  return text;
}

std::string shown_character(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first == '\n') return "\\n";
  if (first == '\t') return " ";
  const bool is_control =
      first < 0x20 || first == 0x7F ||
      (character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0);
  if (!is_control) return std::string(character);
  std::string escaped;
  for (const char& byte : character) escaped += "\\x" + to_hex(std::string_view(&byte, 1));
  return escaped;
}

}  // namespace

std::string shown_output(std::string_view bytes) {
  const std::size_t end = bytes.find_last_not_of(" \t\r\n");
  bytes = utf8_suffix(bytes.substr(0, end + 1), kLongestShownOutput);  // npos + 1 is 0
  std::string text;
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    const bool is_line_end = bytes.starts_with("\r\n");
    if (length == 0) {
      text += "\xEF\xBF\xBD";
    } else if (!is_line_end) {
      text += shown_character(bytes.substr(0, length));
    }
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return std::string(utf8_suffix(text, kLongestShownOutput));
}

void OutputTail::feed(std::string_view piece) {
  while (!piece.empty()) {
    if (left_ > 0) {
      const std::string_view bytes = piece.substr(0, left_);
      keep(bytes);
      left_ -= static_cast<std::uint32_t>(bytes.size());
      piece.remove_prefix(bytes.size());
      continue;
    }
    header_.at(header_bytes_++) = static_cast<unsigned char>(piece.front());
    piece.remove_prefix(1);
    if (header_bytes_ < header_.size()) continue;
    header_bytes_ = 0;
    for (std::size_t i = 4; i < header_.size(); ++i) left_ = (left_ << 8U) | header_.at(i);
  }
}

void OutputTail::keep(std::string_view bytes) {
  if (bytes.size() > kLongestShownOutput) bytes.remove_prefix(bytes.size() - kLongestShownOutput);
  kept_ += bytes;
  if (kept_.size() > kLongestShownOutput) kept_.erase(0, kept_.size() - kLongestShownOutput);
}

}  // namespace agbox
