// SPDX-License-Identifier: Apache-2.0
#include "model/network/sandbox_subnet.h"

#include <gtest/gtest.h>

#include <vector>

namespace agbox {
namespace {

Ipv4Network network(std::string_view text) {
  return parse_ipv4_network(text).value();
}

TEST(NextFreeNetwork, StepsOverWhatIsTaken) {
  const Ipv4Network pool = network("10.201.0.0/16");
  EXPECT_EQ(next_free_network(pool, {}, {}), network("10.201.0.0/28"));
  const std::vector taken = {network("10.201.0.0/27"), network("10.201.0.40/29"),
                             network("192.168.0.0/16")};
  EXPECT_EQ(next_free_network(pool, {}, taken), network("10.201.0.48/28"));
}

TEST(NextFreeNetwork, LetsANetworkRestBeforeItIsUsedAgain) {
  const Ipv4Network pool = network("10.201.0.0/26");
  EXPECT_EQ(next_free_network(pool, network("10.201.0.16/28"), {}), network("10.201.0.32/28"));
  EXPECT_EQ(next_free_network(pool, network("10.201.0.48/28"), {}), network("10.201.0.0/28"));
  EXPECT_EQ(next_free_network(pool, network("10.99.0.0/28"), {}), network("10.201.0.0/28"));
}

TEST(NextFreeNetwork, SaysWhenThePoolIsFull) {
  EXPECT_EQ(next_free_network(network("10.201.0.0/27"), {},
                              std::vector{network("10.201.0.0/28"), network("10.201.0.16/28")}),
            std::nullopt);
  EXPECT_EQ(next_free_network(network("10.201.0.0/16"), {}, std::vector{network("10.0.0.0/8")}),
            std::nullopt);
  EXPECT_EQ(next_free_network(network("10.201.0.0/30"), {}, {}), std::nullopt);
  EXPECT_EQ(next_free_network(network("10.201.0.0/28"), {}, {}), network("10.201.0.0/28"));
}

TEST(FreeNetworkCount, CountsEachOccupiedNetworkOnce) {
  const Ipv4Network pool = network("10.201.0.0/24");
  EXPECT_EQ(network_count(pool), 16U);
  EXPECT_EQ(free_network_count(pool, {}), 16U);
  // A part of one, the same one again, three that overlap, and one elsewhere.
  const std::vector taken = {network("10.201.0.130/31"), network("10.201.0.128/28"),
                             network("10.201.0.0/27"),   network("10.201.0.16/28"),
                             network("10.201.0.0/26"),   network("192.168.0.0/16")};
  EXPECT_EQ(free_network_count(pool, taken), 11U);
  EXPECT_EQ(free_network_count(pool, std::vector{network("10.0.0.0/8")}), 0U);
  EXPECT_EQ(free_network_count(network("0.0.0.0/0"), std::vector{network("255.0.0.0/8")}),
            (std::uint64_t{1} << 28) - (std::uint64_t{1} << 20));
}

TEST(FreeNetworkCount, OfAPoolThatIsTooSmallIsNone) {
  EXPECT_EQ(network_count(network("10.201.0.0/29")), 0U);
  EXPECT_EQ(free_network_count(network("10.201.0.0/29"), std::vector{network("10.201.0.0/29")}),
            0U);
}

}  // namespace
}  // namespace agbox
