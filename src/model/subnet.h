// SPDX-License-Identifier: Apache-2.0
// IPv4 prefixes, and the choice of a sandbox's /28 from the configured pool.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

class Subnet {
 public:
  // 10.201.0.0/16; host bits must be zero.
  static Result<Subnet> parse(std::string_view text);

  // Of any address and length: host bits are cut off.
  Subnet(std::uint32_t address, int length);

  std::uint32_t first() const { return address_; }
  std::uint32_t last() const;
  int length() const { return length_; }
  bool overlaps(const Subnet& other) const {
    return first() <= other.last() && other.first() <= last();
  }
  std::string text() const;

  bool operator==(const Subnet&) const = default;

 private:
  std::uint32_t address_;
  int length_;
};

// The first /28 of the pool after `previous` (round and round, so that a subnet rests before it is
// used again) that none of the taken ones overlaps; nothing when the pool is full.
std::optional<Subnet> next_free_subnet(const Subnet& pool, std::optional<Subnet> previous,
                                       std::span<const Subnet> taken);

}  // namespace agbox
