// SPDX-License-Identifier: Apache-2.0
#include "base/uuid.h"

#include <sys/random.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/check.h"

namespace agbox {

std::string random_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  // Requests of up to 256 bytes are never truncated; it blocks only early in boot.
  AGBOX_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == ssize_t{bytes.size()}, "getrandom");
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);  // version 4
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);  // RFC 4122 variant
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 0x0F];
  }
  return text;
}

}  // namespace agbox
