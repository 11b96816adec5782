// SPDX-License-Identifier: Apache-2.0
// The choice of a sandbox's network from the configured pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/network/ipv4.h"

namespace agbox {

// 13 containers, the gateway, network and broadcast address.
inline constexpr unsigned kSandboxPrefixLength = 28;

// The first /28 of the pool after `previous` (round and round, so that a network rests before it is
// used again) that none of the taken ones overlaps; nothing when the pool is full.
std::optional<Ipv4Network> next_free_network(const Ipv4Network& pool,
                                             std::optional<Ipv4Network> previous,
                                             std::span<const Ipv4Network> taken);

// How many sandboxes the pool holds, and how many of their networks none of the taken ones
// overlaps.
std::uint64_t network_count(const Ipv4Network& pool);
std::uint64_t free_network_count(const Ipv4Network& pool, std::span<const Ipv4Network> taken);

// The host's address in a sandbox's network: the first one after the network's own, which every
// engine chooses by default.
Ipv4Address gateway_of(const Ipv4Network& network);

// In the words of an engine; what is not an IPv4 network overlaps none.
bool overlaps_any(const std::string& subnet, const std::vector<std::string>& others);

// Fails if the host already uses addresses of the pool, and suggests a free one.
Result<> check_address_pool(const Ipv4Network& pool, std::span<const Ipv4Network> in_use);

}  // namespace agbox
