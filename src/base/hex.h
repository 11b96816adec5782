// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ranges>
#include <string>
#include <string_view>

namespace agbox {

// Two lower-case digits for each byte.
template <std::ranges::input_range Bytes>
std::string to_hex(const Bytes& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const auto each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 0x0F];
  }
  return text;
}

}  // namespace agbox
