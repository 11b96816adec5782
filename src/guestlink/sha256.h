// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium/crypto_hash_sha256.h>

#include <array>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace agbox::guestlink {

// In hex.
inline std::string sha256_of(std::string_view bytes) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  // libsodium takes unsigned char.
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size());
  return to_hex(hash);
}

}  // namespace agbox::guestlink
