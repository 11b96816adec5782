// SPDX-License-Identifier: Apache-2.0
// A whole file that a person named, as text for a request.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <string>

namespace agbox::cli {

// The error is the system's words alone. A file of more than `limit` bytes is refused.
std::expected<std::string, std::string> read_file(const std::filesystem::path& path,
                                                  std::size_t limit);

}  // namespace agbox::cli
