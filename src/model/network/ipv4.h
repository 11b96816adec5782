// SPDX-License-Identifier: Apache-2.0
// IPv4 addresses and networks as values. Networks of sandboxes are IPv4 only, so nothing here knows
// IPv6.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

struct Ipv4Address {
  std::uint32_t value = 0;  // in host order: 10.0.0.1 is 0x0A000001

  bool is_loopback() const { return value >> 24 == 127; }
  // 0.0.0.0, which stands for "this host" wherever it is used as a destination.
  bool is_unspecified() const { return value == 0; }
  std::string text() const;
  auto operator<=>(const Ipv4Address&) const = default;
};

struct Ipv4Network {
  Ipv4Address address;  // the first of the network: its host bits are zero
  unsigned prefix_length = 0;

  Ipv4Address last() const {
    return {address.value | (prefix_length == 0 ? ~0U : (1U << (32U - prefix_length)) - 1U)};
  }
  bool overlaps(const Ipv4Network& other) const {
    return address <= other.last() && other.address <= last();
  }
  std::string text() const;
  auto operator<=>(const Ipv4Network&) const = default;
};

// Four decimal numbers; no leading zeros, which some programs read as octal.
Result<Ipv4Address> parse_ipv4_address(std::string_view text);

// <address>/<0 to 32>; set host bits are refused with the network that was probably meant.
Result<Ipv4Network> parse_ipv4_network(std::string_view text);

}  // namespace agbox
