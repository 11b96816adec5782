// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace agbox {

// The profile that every container gets, as the engine takes it; see seccomp/syscalls.txt.
std::string_view seccomp_profile();

}  // namespace agbox
