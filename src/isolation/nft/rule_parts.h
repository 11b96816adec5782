// SPDX-License-Identifier: Apache-2.0
// Building blocks of rules, in nft's terms: each tests a property of a packet and leaves the rule
// if the test fails, or ends it with a verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isolation/nft/nft_table.h"
#include "model/network/ipv4.h"

namespace agbox::nft {

// --- operands in the kernel's format ---

Bytes network_order(std::uint32_t number);
Bytes text_bytes(const std::string& text);
std::uint32_t state_bit(unsigned connection_info);  // IP_CT_…
inline constexpr std::uint32_t kInvalid = 1;        // NF_CT_STATE_INVALID_BIT

// Concatenates.
Rule operator+(Rule left, const Rule& right);

// --- tests ---

Rule from_bridge(const std::string& prefix, bool ours = true);
Rule to_bridge(const std::string& prefix, bool ours = true);
Rule is_ipv4(bool equal = true);
// Loads it for the next part.
Rule destination();
Rule destination_in(const std::string& set);
// The loaded address is in this network.
Rule within(const Ipv4Network& network, bool inside = true);
Rule connection_state(std::uint32_t any_of);
// Not just "established": the direction counts, or connections opened towards a sandbox before the
// rules were loaded would survive.
Rule is_reply();
Rule opened_towards(const Ipv4Network& pool);
Rule route_exists(std::uint32_t of, bool exists);
Rule destination_is_this_host();
// A socket of this host has sent it, of none of these users.
Rule sent_by_others_than(const std::vector<std::uint32_t>& uids);
Rule packet_kind(std::uint8_t kind);
Rule protocol(std::uint8_t number);
Rule destination_port(std::uint16_t port);

// --- verdicts ---

Rule accept();
Rule drop();
Rule leave();
Rule jump_to(const std::string& chain);
Rule go_to(const std::string& chain);
Rule reject_unreachable();

}  // namespace agbox::nft
