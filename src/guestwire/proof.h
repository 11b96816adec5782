// SPDX-License-Identifier: Apache-2.0
// How a guest proves that it is the one that was handed the secret of this container start, without
// saying the secret: HMAC-SHA256 over random bytes that the daemon chose for this connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace agbox::guestwire {

inline constexpr std::size_t kSecretSize = 32;
inline constexpr std::size_t kNonceSize = 32;

// From the kernel's generator.
std::string random_bytes(std::size_t size);

// The secret must have kSecretSize bytes.
std::string prove(std::string_view secret, std::string_view nonce);
// In constant time; false for a secret or a mac of another size.
bool proves(std::string_view mac, std::string_view secret, std::string_view nonce);

}  // namespace agbox::guestwire
