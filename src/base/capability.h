// SPDX-License-Identifier: Apache-2.0
// The capability that the kernel requires of a process that loads a firewall.
#pragma once

namespace agbox {

// Whether this process has CAP_NET_ADMIN in its effective set. Always true on systems without
// capabilities, where we install no rules.
bool has_net_admin_capability();

}  // namespace agbox
