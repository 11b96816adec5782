// SPDX-License-Identifier: Apache-2.0
// Why nobody answers on the daemon's socket, asked of the operating system after gRPC gave up: gRPC
// itself says little more than "unavailable".
#pragma once

#include <agbox/client_error.h>

#include <filesystem>
#include <string_view>

namespace agbox::sdk {

// The longest path that fits into a socket address, without the terminating zero.
inline constexpr std::size_t kLongestSocketPath = 107;

// `transport_words` is what gRPC said; it is quoted where the socket itself looks healthy.
Error unreachable_error(const std::filesystem::path& socket, std::string_view transport_words);

}  // namespace agbox::sdk
