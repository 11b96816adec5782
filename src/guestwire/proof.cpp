// SPDX-License-Identifier: Apache-2.0
#include "guestwire/proof.h"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sys/random.h>

#include "base/check.h"

namespace agbox::guestwire {
namespace {

static_assert(kSecretSize == crypto_auth_hmacsha256_KEYBYTES);

// libsodium uses unsigned char, protobuf char, for the same bytes.
const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// The signed text includes its purpose, so that a proof cannot be used for anything else.
std::string statement(std::string_view nonce) {
  std::string text = "agbox guest link 1 ";
  return text += nonce;
}

}  // namespace

std::string random_bytes(std::size_t size) {
  AGBOX_CHECK(size <= 256, "getrandom truncates requests above 256 bytes");
  std::string bytes(size, '\0');
  AGBOX_CHECK(::getrandom(bytes.data(), size, 0) == static_cast<ssize_t>(size), "getrandom");
  return bytes;
}

std::string prove(std::string_view secret, std::string_view nonce) {
  AGBOX_CHECK(secret.size() == kSecretSize, "secret has the wrong size");
  const std::string text = statement(nonce);
  std::string mac(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(mac.data()), raw(text), text.size(),
                         raw(secret));
  return mac;
}

bool proves(std::string_view mac, std::string_view secret, std::string_view nonce) {
  if (secret.size() != kSecretSize || mac.size() != crypto_auth_hmacsha256_BYTES) return false;
  const std::string text = statement(nonce);
  return crypto_auth_hmacsha256_verify(raw(mac), raw(text), text.size(), raw(secret)) == 0;
}

}  // namespace agbox::guestwire
