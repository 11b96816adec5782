// SPDX-License-Identifier: Apache-2.0
// The capability that the kernel requires of a process that loads a firewall.
#pragma once

#include <string>

namespace agbox {

// Whether this process has CAP_NET_ADMIN in its effective set. Always true on systems without
// capabilities, where we install no rules.
bool has_net_admin_capability();

// The path of this process's program, if it has file capabilities and every user can run it; else
// empty.
std::string capable_program_of_everyone();

}  // namespace agbox
