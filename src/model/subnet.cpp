// SPDX-License-Identifier: Apache-2.0
#include "model/subnet.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace agbox {
namespace {

constexpr int kSandboxLength = 28;

std::uint32_t mask(int length) {
  return length == 0 ? 0 : ~std::uint32_t{0} << static_cast<unsigned>(32 - length);
}

// A decimal number up to `most` from the front of `rest`, without leading zeros.
std::optional<std::uint32_t> take_number(std::string_view& rest, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  const auto digits = static_cast<std::size_t>(end - rest.data());
  if (problem != std::errc() || value > most) return std::nullopt;
  if (digits > 1 && rest[0] == '0') return std::nullopt;
  rest.remove_prefix(digits);
  return value;
}

bool take(std::string_view& rest, char expected) {
  if (rest.empty() || rest[0] != expected) return false;
  rest.remove_prefix(1);
  return true;
}

}  // namespace

Subnet::Subnet(std::uint32_t address, int length)
    : address_(address & mask(length)), length_(length) {}

std::uint32_t Subnet::last() const {
  return address_ | ~mask(length_);
}

Result<Subnet> Subnet::parse(std::string_view text) {
  const auto invalid = [&] {
    return fail(Reason::InvalidArgument,
                "\"" + std::string(text) + "\" is not an IPv4 prefix such as 10.201.0.0/16");
  };
  std::string_view rest = text;
  std::uint32_t address = 0;
  for (int i = 0; i < 4; ++i) {
    if (i > 0 && !take(rest, '.')) return invalid();
    const auto part = take_number(rest, 255);
    if (!part) return invalid();
    address = address << 8U | *part;
  }
  if (!take(rest, '/')) return invalid();
  const auto length = take_number(rest, 32);
  if (!length || !rest.empty()) return invalid();
  const Subnet subnet(address, static_cast<int>(*length));
  if (subnet.first() != address) {
    return fail(Reason::InvalidArgument,
                "\"" + std::string(text) + "\" has host bits set; the prefix is " + subnet.text());
  }
  return subnet;
}

std::string Subnet::text() const {
  std::string text;
  for (unsigned shift = 24;; shift -= 8) {
    text += std::to_string(address_ >> shift & 255U);
    if (shift == 0) break;
    text += '.';
  }
  return text + "/" + std::to_string(length_);
}

std::optional<Subnet> next_free_subnet(const Subnet& pool, std::optional<Subnet> previous,
                                       std::span<const Subnet> taken) {
  if (pool.length() > kSandboxLength) return std::nullopt;
  std::vector<Subnet> obstacles;
  for (const Subnet& subnet : taken) {
    if (subnet.overlaps(pool)) obstacles.push_back(subnet);
  }
  const std::uint64_t count = std::uint64_t{1}
                              << static_cast<unsigned>(kSandboxLength - pool.length());
  const std::uint64_t start =
      previous && previous->overlaps(pool) && previous->first() >= pool.first()
          ? (previous->first() - pool.first()) / 16U + 1U
          : 0U;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto offset = static_cast<std::uint32_t>((start + i) % count * 16U);
    const Subnet candidate(pool.first() + offset, kSandboxLength);
    const bool is_free = std::ranges::none_of(
        obstacles, [&](const Subnet& subnet) { return subnet.overlaps(candidate); });
    if (is_free) return candidate;
  }
  return std::nullopt;
}

}  // namespace agbox
