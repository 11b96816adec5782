// SPDX-License-Identifier: Apache-2.0
// Other firewalls that drop what this host forwards, unless a rule of theirs accepts it: our own
// verdicts only refuse, so such a policy cuts sandboxes off whatever we do. Pure.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "isolation/firewall_facts.h"
#include "isolation/nft/nft_table.h"

namespace agbox {

// Of the tables' chains, those at the forward hook with the policy drop. `our_bridges` is how the
// names of all bridges of sandboxes begin.
std::vector<DroppingChain> dropping_chains_of(std::span<const nft::Table> tables,
                                              std::string_view our_bridges);

}  // namespace agbox
