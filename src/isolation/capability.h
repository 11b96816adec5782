// SPDX-License-Identifier: Apache-2.0
// Capabilities needed to load a firewall.
#pragma once

namespace agbox {

// True if CAP_NET_ADMIN is in this process's effective set; always true on systems without
// capabilities, where we install no rules.
bool has_net_admin_capability();

}  // namespace agbox
