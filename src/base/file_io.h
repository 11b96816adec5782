// SPDX-License-Identifier: Apache-2.0
// Reads and writes whole files, through interrupted and partial system calls.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace agbox {

// From the current position to the end. The error is an errno; EFBIG if more than `limit` bytes
// are left.
std::expected<std::string, int> read_all(int fd, std::size_t limit);

// Returns 0 or an errno.
int write_all(int fd, std::string_view bytes);

}  // namespace agbox
