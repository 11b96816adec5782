// SPDX-License-Identifier: Apache-2.0
// Reads small system files, such as those in /proc.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace agbox {

// Returns nullopt if the file cannot be read.
std::optional<std::string> read_text_file(const std::filesystem::path& path);

}  // namespace agbox
