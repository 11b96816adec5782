// SPDX-License-Identifier: Apache-2.0
#include "model/network/sandbox_subnet.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace agbox {
namespace {

constexpr std::uint32_t kAddresses = 1U << (32U - kSandboxPrefixLength);

}  // namespace

std::optional<Ipv4Network> next_free_network(const Ipv4Network& pool,
                                             std::optional<Ipv4Network> previous,
                                             std::span<const Ipv4Network> taken) {
  if (pool.prefix_length > kSandboxPrefixLength) return std::nullopt;
  std::vector<Ipv4Network> obstacles;
  std::ranges::copy_if(taken, std::back_inserter(obstacles),
                       [&](const Ipv4Network& network) { return network.overlaps(pool); });
  const std::uint32_t first = pool.address.value;
  const std::uint64_t count = std::uint64_t{1} << (kSandboxPrefixLength - pool.prefix_length);
  std::uint64_t start = 0;
  if (previous && previous->overlaps(pool) && previous->address.value >= first) {
    start = (previous->address.value - first) / kAddresses + 1U;
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto offset = static_cast<std::uint32_t>((start + i) % count * kAddresses);
    const Ipv4Network candidate{.address = {first + offset}, .prefix_length = kSandboxPrefixLength};
    const bool is_free = std::ranges::none_of(
        obstacles, [&](const Ipv4Network& network) { return network.overlaps(candidate); });
    if (is_free) return candidate;
  }
  return std::nullopt;
}

std::uint64_t network_count(const Ipv4Network& pool) {
  if (pool.prefix_length > kSandboxPrefixLength) return 0;
  return std::uint64_t{1} << (kSandboxPrefixLength - pool.prefix_length);
}

std::uint64_t free_network_count(const Ipv4Network& pool, std::span<const Ipv4Network> taken) {
  // In the order of their first addresses each needs to be looked at once, however they overlap.
  std::vector<Ipv4Network> obstacles;
  std::ranges::copy_if(taken, std::back_inserter(obstacles),
                       [&](const Ipv4Network& network) { return network.overlaps(pool); });
  std::ranges::sort(obstacles);
  const std::uint64_t all = network_count(pool);
  std::uint64_t occupied = 0;
  std::uint64_t next = 0;  // the first of the pool's networks that no obstacle has reached yet
  for (const Ipv4Network& network : obstacles) {
    const std::uint32_t first = std::max(network.address, pool.address).value - pool.address.value;
    const std::uint32_t last = std::min(network.last(), pool.last()).value - pool.address.value;
    const std::uint64_t begin = std::max<std::uint64_t>(first / kAddresses, next);
    const std::uint64_t end = std::min<std::uint64_t>(last / kAddresses + 1U, all);
    if (end <= begin) continue;
    occupied += end - begin;
    next = end;
  }
  return all - occupied;
}

Ipv4Address gateway_of(const Ipv4Network& network) {
  return {network.address.value + 1};
}

bool overlaps_any(const std::string& subnet, const std::vector<std::string>& others) {
  const auto ours = parse_ipv4_network(subnet);
  return ours && std::ranges::any_of(others, [&ours](const std::string& text) {
           const auto other = parse_ipv4_network(text);
           return other && ours->overlaps(*other);
         });
}

Result<> check_address_pool(const Ipv4Network& pool, std::span<const Ipv4Network> in_use) {
  const auto obstacle = [&](const Ipv4Network& candidate) {
    return std::ranges::find_if(
        in_use, [&](const Ipv4Network& route) { return route.overlaps(candidate); });
  };
  const auto in_the_way = obstacle(pool);
  if (in_the_way == in_use.end()) return {};
  std::string message = "network.address_pool " + pool.text() + " overlaps this host's route to " +
                        in_the_way->text();
  // From 10.201.0.0/16 up to the end of 10.0.0.0/8.
  for (std::uint32_t first = 0x0AC90000; first != 0x0B000000; first += 0x10000) {
    const Ipv4Network candidate{.address = {first}, .prefix_length = 16};
    if (obstacle(candidate) != in_use.end()) continue;
    message += "; " + candidate.text() + " is free: set it in config.toml";
    break;
  }
  return fail(reason::kInvalidArgument, std::move(message));
}

}  // namespace agbox
