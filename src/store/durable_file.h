// SPDX-License-Identifier: Apache-2.0
// Files that are either whole or absent, also after a power cut.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace agbox {

// The names in a folder are as durable as its files.
Result<> sync_folder(const std::filesystem::path& folder);

// Makes `to` a copy of the open file `from`, replacing what was there; it has its name only when it
// is complete.
Result<> copy_durably(int from, const std::filesystem::path& to);

// mkdir -p with mode 0700 for what is missing; each new name is durable.
Result<> make_private_folders(const std::filesystem::path& folder);

}  // namespace agbox
