// SPDX-License-Identifier: Apache-2.0
// Whether a process holds the flock of a file, read from the kernel's list of locks: an attempt to
// take it, however short, could be in the way of the one whose lock it is.
#pragma once

#include <sys/types.h>

#include <string_view>

namespace agbox {

// `proc_locks` is the text of /proc/locks. The file is known by its inode alone: some filesystems
// show another device there than to stat(), and one process hardly has two such files.
bool holds_flock(std::string_view proc_locks, pid_t process, ino_t inode);

}  // namespace agbox
