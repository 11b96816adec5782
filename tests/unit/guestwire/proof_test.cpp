// SPDX-License-Identifier: Apache-2.0
#include "guestwire/proof.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace agbox::guestwire {
namespace {

TEST(Proof, IsValidForItsSecretAndNonce) {
  const std::string secret = random_bytes(kSecretSize);
  const std::string nonce = random_bytes(kNonceSize);
  const std::string mac = prove(secret, nonce);
  EXPECT_TRUE(proves(mac, secret, nonce));
  EXPECT_FALSE(proves(mac, random_bytes(kSecretSize), nonce));
  EXPECT_FALSE(proves(mac, secret, random_bytes(kNonceSize)));
}

TEST(Proof, AnyFlippedBitInvalidatesIt) {
  const std::string secret(kSecretSize, 's');
  const std::string nonce(kNonceSize, 'n');
  const std::string mac = prove(secret, nonce);
  for (std::size_t bit = 0; bit < mac.size() * 8; ++bit) {
    std::string changed = mac;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(proves(changed, secret, nonce)) << bit;
  }
}

TEST(Proof, OtherSizesAreInvalid) {
  const std::string secret(kSecretSize, 's');
  const std::string nonce(kNonceSize, 'n');
  const std::string mac = prove(secret, nonce);
  EXPECT_FALSE(proves("", secret, nonce));
  EXPECT_FALSE(proves(mac.substr(0, 31), secret, nonce));
  EXPECT_FALSE(proves(mac + "x", secret, nonce));
  EXPECT_FALSE(proves(mac, "", nonce));
}

// Computed with another implementation (Python's hmac module).
TEST(Proof, IsHmacSha256OverThePurposeAndTheNonce) {
  const std::string mac = prove(std::string(kSecretSize, 's'), std::string(kNonceSize, 'n'));
  EXPECT_EQ(to_hex(mac), "8d452429a7c6ee2db438fdb8637aa02b1ea78a8c0c6ca29e1339d94f47d521a1");
}

}  // namespace
}  // namespace agbox::guestwire
