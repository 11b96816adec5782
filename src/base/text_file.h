// SPDX-License-Identifier: Apache-2.0
// A small file of the system, such as one of /proc, as text.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace agbox {

// Nothing where it cannot be read.
std::optional<std::string> read_text_file(const std::filesystem::path& path);

}  // namespace agbox
