// SPDX-License-Identifier: Apache-2.0
// Who descends from whom, as /proc tells it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string_view>

namespace agbox::guest {

// From the text of /proc/<pid>/stat. The name in it is the process's own choice, parentheses and
// newlines included.
std::optional<pid_t> parent_in_stat(std::string_view stat);

// The parent of a process of this container; nothing where it is gone.
std::optional<pid_t> parent_of(pid_t pid);

// Whether `pid` is `ancestor` or comes from it.
bool descends(pid_t pid, pid_t ancestor,
              const std::function<std::optional<pid_t>(pid_t)>& parent = parent_of);

}  // namespace agbox::guest
