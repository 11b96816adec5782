// SPDX-License-Identifier: Apache-2.0
#include "model/network/ipv4.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(Ipv4, AnAddressIsFourDecimalNumbers) {
  const auto address = parse_ipv4_address("10.201.0.255");
  ASSERT_TRUE(address.has_value());
  EXPECT_EQ(address->value, 0x0AC900FFU);
  EXPECT_EQ(address->text(), "10.201.0.255");
  EXPECT_FALSE(address->is_loopback());
  EXPECT_TRUE(parse_ipv4_address("127.0.0.53")->is_loopback());
  for (const char* text : {"", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "1.2.3.-4",
                           "1.2.3.4 ", "1..3.4", "::1", "a.b.c.d", "1.2.3.", ".1.2.3"}) {
    EXPECT_FALSE(parse_ipv4_address(text).has_value()) << text;
  }
}

TEST(Ipv4, ANetworkIsAnAddressAndAPrefixLength) {
  EXPECT_EQ(parse_ipv4_network("10.201.0.0/16")->text(), "10.201.0.0/16");
  EXPECT_EQ(parse_ipv4_network("0.0.0.0/0")->prefix_length, 0U);
  EXPECT_EQ(parse_ipv4_network("1.2.3.4/32")->address.text(), "1.2.3.4");
  for (const char* text : {"", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "/16",
                           "10.0.0.0/16/16", "10.0.0.0/016", "fd00::/8"}) {
    EXPECT_FALSE(parse_ipv4_network(text).has_value()) << text;
  }
}

TEST(Ipv4, SetHostBitsAreRefusedWithTheNetworkThatWasMeant) {
  EXPECT_EQ(parse_ipv4_network("10.201.7.0/16").error().message(),
            "\"10.201.7.0/16\" has bits set after its prefix; the network is 10.201.0.0/16");
}

TEST(Ipv4Network, OverlapsWhatSharesAnAddress) {
  const auto network = [](std::string_view text) { return parse_ipv4_network(text).value(); };
  EXPECT_TRUE(network("0.0.0.0/0").overlaps(network("255.255.255.255/32")));
  EXPECT_TRUE(network("10.0.0.16/28").overlaps(network("10.0.0.0/8")));
  EXPECT_FALSE(network("10.0.0.16/28").overlaps(network("10.0.0.32/28")));
  EXPECT_FALSE(network("10.0.0.0/32").overlaps(network("10.0.0.1/32")));
  EXPECT_EQ(network("10.0.0.0/28").last().text(), "10.0.0.15");
}

}  // namespace
}  // namespace agbox
