// SPDX-License-Identifier: Apache-2.0
#include "base/shown_path.h"

#include <algorithm>
#include <cstddef>

#include "base/hex.h"
#include "base/utf8.h"

namespace agbox {
namespace {

constexpr std::size_t kHalf = 384;  // of a path that is too long

std::string escaped_bytes(std::string_view bytes) {
  std::string out;
  for (const char& byte : bytes) out += "\\x" + to_hex(std::string_view(&byte, 1));
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    const auto first = static_cast<unsigned char>(text[0]);
    const bool is_control =
        first < 0x20 || first == 0x7F ||
        (length == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    out += length == 0 || is_control || first == '\\' ? escaped_bytes(character)
                                                      : std::string(character);
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace

std::string shown_path(std::string_view path) {
  if (path.size() <= 2 * kHalf) return escaped(path);
  std::string_view end = path.substr(path.size() - kHalf);
  // Not in the middle of a character.
  while (!end.empty() && (static_cast<unsigned char>(end[0]) & 0xC0U) == 0x80U)
    end.remove_prefix(1);
  return escaped(utf8_prefix(path, kHalf)) + "..." + escaped(end);
}

}  // namespace agbox
