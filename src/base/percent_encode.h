// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace agbox {

// For a part of a URL: everything but letters, digits, -._~ and the characters in `kept` becomes
// %XX.
inline std::string percent_encode(std::string_view text, std::string_view kept = {}) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || std::string_view("-._~").contains(c) ||
                          kept.contains(c);
    if (is_plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4], kDigits[byte & 0x0F]};
  }
  return encoded;
}

}  // namespace agbox
