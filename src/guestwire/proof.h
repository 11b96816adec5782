// SPDX-License-Identifier: Apache-2.0
// Challenge-response authentication of a guest with the secret of its container start: HMAC-SHA256
// over a nonce that the daemon chose for this connection.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace agbox::guestwire {

inline constexpr std::size_t kSecretSize = 32;
inline constexpr std::size_t kNonceSize = 32;

// From getrandom().
std::string random_bytes(std::size_t size);

// `secret` must have kSecretSize bytes.
std::string prove(std::string_view secret, std::string_view nonce);
// Constant time; false if the secret or the MAC has the wrong size.
bool proves(std::string_view mac, std::string_view secret, std::string_view nonce);

}  // namespace agbox::guestwire
