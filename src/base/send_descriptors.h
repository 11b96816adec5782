// SPDX-License-Identifier: Apache-2.0
// Passes descriptors to another process, over a Unix socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>

namespace agbox {

inline constexpr std::size_t kMaxSentDescriptors = 8;  // with one call

// Sends bytes, with the descriptors on the first of them. Does not wait and raises no SIGPIPE.
// Returns how many bytes were sent, or -1 with errno.
ssize_t send_with_descriptors(int socket, std::string_view bytes, std::span<const int> descriptors);

}  // namespace agbox
