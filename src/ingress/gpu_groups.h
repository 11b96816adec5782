// SPDX-License-Identifier: Apache-2.0
// The groups that own the GPUs of this host: the runtime user of a sandbox that gets the GPUs has
// to be a member of them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <set>

#include "base/result.h"

namespace agbox {

// `devices` is /dev. Never group 0: a device that only root may use does not make the runtime user
// a member of root's group. Blocks on the filesystem.
Result<std::set<gid_t>> gpu_groups(const std::filesystem::path& devices);

}  // namespace agbox
