// SPDX-License-Identifier: Apache-2.0
// Other firewalls that drop forwarded packets unless a rule of theirs accepts them: our verdicts
// only refuse, so such a policy cuts sandboxes off regardless of ours. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "isolation/firewall_facts.h"
#include "isolation/nft/nft_table.h"

namespace agbox {

// The chains at the forward hook with policy drop. `our_bridges` is the name prefix of all sandbox
// bridges.
std::vector<DroppingChain> dropping_chains_of(std::span<const nft::Table> tables,
                                              std::string_view our_bridges);

}  // namespace agbox
