// SPDX-License-Identifier: Apache-2.0
#include "model/host_routes.h"

#include <bit>
#include <charconv>
#include <optional>
#include <sstream>
#include <string>

namespace agbox {
namespace {

// The kernel prints an address as the number that its bytes are on this machine.
std::optional<std::uint32_t> read_hex_address(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value, 16);
  if (problem != std::errc() || stopped != end) return std::nullopt;
  if constexpr (std::endian::native == std::endian::little) value = __builtin_bswap32(value);
  return value;
}

}  // namespace

std::vector<Ipv4Network> read_host_routes(std::string_view proc_net_route,
                                          std::string_view our_bridges) {
  std::vector<Ipv4Network> networks;
  std::istringstream lines{std::string(proc_net_route)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string interface, destination, gateway, flags, references, use, metric, mask;
    words >> interface >> destination >> gateway >> flags >> references >> use >> metric >> mask;
    const auto address = read_hex_address(destination);
    const auto bits = read_hex_address(mask);
    if (!words || !address || !bits || *bits == 0) continue;
    if (interface.starts_with(our_bridges)) continue;
    networks.push_back({.address = {*address & *bits},
                        .prefix_length = static_cast<unsigned>(std::popcount(*bits))});
  }
  return networks;
}

}  // namespace agbox
