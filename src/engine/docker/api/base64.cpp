// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/base64.h"

#include <sodium/utils.h>

#include <algorithm>

namespace agbox {

// libsodium takes unsigned char.
std::string to_url_safe_base64(std::string_view bytes) {
  constexpr int kVariant = sodium_base64_VARIANT_URLSAFE;
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), kVariant);
  text.pop_back();  // the terminator
  return text;
}

std::optional<std::string> from_base64(std::string text) {
  while (text.ends_with('=')) text.pop_back();
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  std::string bytes(text.size(), '\0');
  std::size_t size = 0;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr,
                        sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0) {
    return std::nullopt;
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace agbox
