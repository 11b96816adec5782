// SPDX-License-Identifier: Apache-2.0
// Reads a file named on the command line.
#pragma once

#include <cstddef>
#include <expected>
#include <filesystem>
#include <string>

namespace agbox::cli {

// The error is the reason alone, without the path. More than `limit` bytes are an error.
std::expected<std::string, std::string> read_file(const std::filesystem::path& path,
                                                  std::size_t limit);

}  // namespace agbox::cli
