// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace agbox {

// The seccomp profile of every container, in the engine's format; see seccomp/syscalls.txt.
std::string_view seccomp_profile();

}  // namespace agbox
