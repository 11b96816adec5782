// SPDX-License-Identifier: Apache-2.0
#include "model/subnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace agbox {
namespace {

Subnet subnet(std::string_view text) {
  return Subnet::parse(text).value();
}

TEST(Subnet, ReadsAndWritesPrefixes) {
  for (const char* text : {"0.0.0.0/0", "10.201.0.0/16", "255.255.255.255/32", "10.0.0.16/28"}) {
    EXPECT_EQ(subnet(text).text(), text);
  }
}

TEST(Subnet, RefusesWhatIsNoPrefix) {
  for (const char* text : {"", "10.0.0.0", "10.0.0/8", "10.0.0.0/33", "256.0.0.0/8", "10.0.0.0/8 ",
                           "10.0.0.00/8", "a.b.c.d/8", "10.0.0.0/", "-1.0.0.0/8", "::/0"}) {
    const auto parsed = Subnet::parse(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_THAT(parsed.error().message(), testing::HasSubstr("is not an IPv4 prefix"));
  }
  EXPECT_EQ(Subnet::parse("10.0.0.1/8").error().message(),
            "\"10.0.0.1/8\" has host bits set; the prefix is 10.0.0.0/8");
}

TEST(NextFreeSubnet, StepsOverWhatIsTaken) {
  const Subnet pool = subnet("10.201.0.0/16");
  EXPECT_EQ(next_free_subnet(pool, {}, {}), subnet("10.201.0.0/28"));
  const std::vector taken = {subnet("10.201.0.0/27"), subnet("10.201.0.40/29"),
                             subnet("192.168.0.0/16")};
  EXPECT_EQ(next_free_subnet(pool, {}, taken), subnet("10.201.0.48/28"));
}

TEST(NextFreeSubnet, LetsASubnetRestBeforeItIsUsedAgain) {
  const Subnet pool = subnet("10.201.0.0/26");
  EXPECT_EQ(next_free_subnet(pool, subnet("10.201.0.16/28"), {}), subnet("10.201.0.32/28"));
  EXPECT_EQ(next_free_subnet(pool, subnet("10.201.0.48/28"), {}), subnet("10.201.0.0/28"));
  EXPECT_EQ(next_free_subnet(pool, subnet("10.99.0.0/28"), {}), subnet("10.201.0.0/28"));
}

TEST(NextFreeSubnet, SaysWhenThePoolIsFull) {
  EXPECT_EQ(next_free_subnet(subnet("10.201.0.0/27"), {},
                             std::vector{subnet("10.201.0.0/28"), subnet("10.201.0.16/28")}),
            std::nullopt);
  EXPECT_EQ(next_free_subnet(subnet("10.201.0.0/16"), {}, std::vector{subnet("10.0.0.0/8")}),
            std::nullopt);
  EXPECT_EQ(next_free_subnet(subnet("10.201.0.0/30"), {}, {}), std::nullopt);
  EXPECT_EQ(next_free_subnet(subnet("10.201.0.0/28"), {}, {}), subnet("10.201.0.0/28"));
}

}  // namespace
}  // namespace agbox
