// SPDX-License-Identifier: Apache-2.0
// Whether a process holds the flock of a file, according to /proc/locks. Trying to take the lock
// instead, however briefly, could make its owner fail.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace agbox {

// `proc_locks` is the content of /proc/locks. Compares inodes only: some filesystems report a
// different device there than stat() does, and a process hardly has two such files.
bool holds_flock(std::string_view proc_locks, pid_t process, ino_t inode);

}  // namespace agbox
