// SPDX-License-Identifier: Apache-2.0
// What the kernel asks of a process that loads a firewall.
#pragma once

namespace agbox {

// Whether this process may change the host's firewall (CAP_NET_ADMIN in its effective set). Always
// true where the system has no capabilities and we install no rules.
bool has_net_admin_capability();

}  // namespace agbox
