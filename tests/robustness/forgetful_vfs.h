// SPDX-License-Identifier: Apache-2.0
// A file layer for SQLite that behaves like a disk in a power cut: what was written but not synced
// lives only in this process's memory, so that a kill forgets it. The kernel's page cache, which
// survives a kill, never hides a missing sync here.
#pragma once

namespace agbox {

inline constexpr const char* kForgetfulVfs = "forgetful";

// Once per process, before the first connection.
void register_forgetful_vfs();

}  // namespace agbox
