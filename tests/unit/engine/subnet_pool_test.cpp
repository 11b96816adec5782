// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/network/subnet_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

SubnetPool pool_of(const char* text) {
  HostNetworkAccess host;
  host.networks_in_use = [](std::string_view) { return std::vector<Ipv4Network>(); };
  return {parse_ipv4_network(text).value(), "agbxtest", host};
}

TEST(SubnetPool, GivesEachOnceUntilItIsGivenBack) {
  SubnetPool pool = pool_of("10.99.0.0/27");
  const auto first = pool.choose({}).value().text();
  const auto second = pool.choose({}).value().text();
  EXPECT_NE(first, second);
  const auto none = pool.choose({});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(none.error().message(), HasSubstr("10.99.0.0/27"));
  pool.give_back(first);
  EXPECT_EQ(pool.choose({})->text(), first);
}

TEST(SubnetPool, AvoidsWhatTheEngineAndEarlierRunsHave) {
  SubnetPool pool = pool_of("10.99.0.0/26");
  pool.take("10.99.0.0/28");
  EXPECT_EQ(pool.choose({"10.99.0.16/28", "fd00::/64", "nonsense"})->text(), "10.99.0.32/28");
  EXPECT_EQ(pool.choose({"10.99.0.16/28"})->text(), "10.99.0.48/28");
  EXPECT_FALSE(pool.choose({"10.99.0.0/16"}).has_value());
}

TEST(SubnetPool, TheLastGivenBackIsNotTheNextGiven) {
  SubnetPool pool = pool_of("10.99.0.0/26");
  const auto first = pool.choose({})->text();
  pool.give_back(first);
  EXPECT_NE(pool.choose({})->text(), first);
}

}  // namespace
}  // namespace agbox
