// SPDX-License-Identifier: Apache-2.0
// Files that are either complete or absent, even after a power cut.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace agbox {

// Makes the entries of a directory durable.
Result<> sync_directory(const std::filesystem::path& directory);

// Replaces `to` by a copy of the open file `from`, atomically.
Result<> copy_durably(int from, const std::filesystem::path& to);

// mkdir -p with mode 0700; each new entry is durable.
Result<> make_private_directories(const std::filesystem::path& directory);

}  // namespace agbox
