// SPDX-License-Identifier: Apache-2.0
#include "model/network/ipv4.h"

#include <charconv>
#include <optional>

namespace agbox {
namespace {

// A whole decimal number up to `maximum`, without leading zeros.
std::optional<std::uint32_t> parse_number(std::string_view text, std::uint32_t maximum) {
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc() || rest != end || number > maximum) return std::nullopt;
  return number;
}

}  // namespace

std::string Ipv4Address::text() const {
  return std::to_string(value >> 24) + '.' + std::to_string(value >> 16 & 0xFF) + '.' +
         std::to_string(value >> 8 & 0xFF) + '.' + std::to_string(value & 0xFF);
}

std::string Ipv4Network::text() const {
  return address.text() + '/' + std::to_string(prefix_length);
}

Result<Ipv4Address> parse_ipv4_address(std::string_view text) {
  const auto invalid = [&] {
    return fail(reason::kInvalidArgument,
                "\"" + std::string(text) + "\" is not an IPv4 address; write for example 1.1.1.1");
  };
  Ipv4Address address;
  std::string_view rest = text;
  for (int part = 0; part < 4; ++part) {
    const std::size_t dot = rest.find('.');
    const bool is_last = part == 3;
    if ((dot == std::string_view::npos) != is_last) return invalid();
    const auto number = parse_number(rest.substr(0, dot), 255);
    if (!number) return invalid();
    address.value = address.value << 8 | *number;
    if (!is_last) rest.remove_prefix(dot + 1);
  }
  return address;
}

Result<Ipv4Network> parse_ipv4_network(std::string_view text) {
  const auto invalid = [&](const std::string& why) {
    return fail(reason::kInvalidArgument, "\"" + std::string(text) + "\" " + why);
  };
  const std::size_t slash = text.find('/');
  const auto address = parse_ipv4_address(text.substr(0, slash));
  const auto length =
      slash == std::string_view::npos ? std::nullopt : parse_number(text.substr(slash + 1), 32);
  if (!address || !length) {
    return invalid("is not an IPv4 network; write for example 10.201.0.0/16");
  }
  const std::uint32_t mask = *length == 0 ? 0 : ~std::uint32_t{0} << (32 - *length);
  const Ipv4Network network{.address = {address->value & mask}, .prefix_length = *length};
  if (network.address != *address) {
    return invalid("has bits set after its prefix; the network is " + network.text());
  }
  return network;
}

}  // namespace agbox
