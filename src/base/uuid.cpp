// SPDX-License-Identifier: Apache-2.0
#include "base/uuid.h"

#include <sys/random.h>

#include <array>
#include <cstdint>

#include "base/check.h"
#include "base/hex.h"

namespace agbox {

std::string random_uuid() {
  std::array<std::uint8_t, 16> bytes{};
  // Requests of up to 256 bytes are never truncated; it blocks only early in boot.
  AGBOX_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == ssize_t{bytes.size()}, "getrandom");
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0F) | 0x40);  // version 4
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3F) | 0x80);  // RFC 4122 variant
  std::string text = to_hex(bytes);
  for (const std::size_t place : {20U, 16U, 12U, 8U}) text.insert(place, 1, '-');
  return text;
}

}  // namespace agbox
