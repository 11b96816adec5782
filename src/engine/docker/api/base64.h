// SPDX-License-Identifier: Apache-2.0
// Base64 as Docker uses it, in headers and in the files of its command-line client.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace agbox {

std::string to_url_safe_base64(std::string_view bytes);
// Of either alphabet, padded or not; nullopt if invalid.
std::optional<std::string> from_base64(std::string text);

}  // namespace agbox
