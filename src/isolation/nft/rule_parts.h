// SPDX-License-Identifier: Apache-2.0
// The parts that rules are put together from, in the words of nft: each tests something of a packet
// and leaves the rule where the test fails, or ends it with a verdict.
#pragma once

#include <cstdint>
#include <string>

#include "isolation/nft/nft_table.h"
#include "model/network/ipv4.h"

namespace agbox::nft {

// --- what is compared, as the kernel has it ---

Bytes network_order(std::uint32_t number);
Bytes text_bytes(const std::string& text);
std::uint32_t state_bit(unsigned connection_info);  // IP_CT_…
inline constexpr std::uint32_t kInvalid = 1;        // NF_CT_STATE_INVALID_BIT

// One part after the other.
Rule operator+(Rule left, const Rule& right);

// --- tests ---

Rule from_bridge(const std::string& prefix, bool ours = true);
Rule to_bridge(const std::string& prefix, bool ours = true);
Rule is_ipv4(bool equal = true);
// Loads it, for what comes next.
Rule destination();
Rule destination_in(const std::string& set);
// What was loaded is an address of this network.
Rule within(const Ipv4Network& network, bool inside = true);
Rule connection_state(std::uint32_t any_of);
// Not "established" alone: the opener of a connection counts, and what was opened towards a sandbox
// before the rules came would live on.
Rule is_reply();
Rule opened_towards(const Ipv4Network& pool);
Rule route_exists(std::uint32_t of, bool exists);
Rule destination_is_this_host();
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
