// SPDX-License-Identifier: Apache-2.0
// Determines why the daemon's socket is unreachable after gRPC failed, because gRPC reports little
// more than "unavailable".
#pragma once

#include <agbox/client_error.h>

#include <filesystem>
#include <string_view>

namespace agbox::sdk {

// The longest path that fits into a socket address, without the terminating zero.
inline constexpr std::size_t kMaxSocketPathSize = 107;

// `transport_message` is gRPC's error; it is quoted if the socket accepts connections.
Error unreachable_error(const std::filesystem::path& socket, std::string_view transport_message);

}  // namespace agbox::sdk
