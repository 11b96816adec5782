// SPDX-License-Identifier: Apache-2.0
// An SQLite VFS that simulates power cuts: unsynced writes exist only in this process's memory, so
// a kill loses them. The kernel's page cache, which survives a kill, cannot hide a missing sync.
#pragma once

namespace agbox {

inline constexpr const char* kForgetfulVfs = "forgetful";

// Once per process, before the first connection.
void register_forgetful_vfs();

}  // namespace agbox
