// SPDX-License-Identifier: Apache-2.0
#include "model/object_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr std::string_view kInstance = "0a0b0c0d-0000-4000-8000-000000000000";

TEST(ObjectNames, AreThoseThatClientsDerive) {
  EXPECT_EQ(network_name("My_box-1"), "agbox-net-My_box-1");
  EXPECT_EQ(sandbox_of_network("agbox-net-My_box-1"), "My_box-1");
  EXPECT_EQ(sandbox_of_network("bridge"), std::nullopt);
  EXPECT_EQ(primary_container_name("My_box-1"), "agbox-primary-My_box-1");
}

TEST(BridgeName, FillsAnInterfaceNameAndStartsWithTheInstancesPrefix) {
  const std::string name = bridge_name(kInstance, "box-1");
  EXPECT_EQ(name.size(), 15U);
  EXPECT_THAT(name, testing::StartsWith(bridge_prefix(kInstance)));
  EXPECT_EQ(bridge_prefix(kInstance).size(), 8U);
  EXPECT_EQ(name, bridge_name(kInstance, "box-1"));
  EXPECT_NE(bridge_prefix(kInstance), bridge_prefix("1a0b0c0d-0000-4000-8000-000000000000"));
}

TEST(BridgeName, DiffersBetweenManySandboxes) {
  std::set<std::string> names;
  for (int i = 0; i < 4096; ++i)
    names.insert(bridge_name(kInstance, "sandbox-" + std::to_string(i)));
  EXPECT_EQ(names.size(), 4096U);
}

TEST(Labels, SayWhoseTheObjectIsAndCarryTheUsersOwn) {
  EXPECT_THAT(primary_labels("inst", "box-1", {{"team", "a"}}),
              ElementsAre(Pair("io.github.1996fanrui.agents-sandbox.component", "primary"),
                          Pair("io.github.1996fanrui.agents-sandbox.instance", "inst"),
                          Pair("io.github.1996fanrui.agents-sandbox.profile", "default"),
                          Pair("io.github.1996fanrui.agents-sandbox.sandbox-id", "box-1"),
                          Pair("io.github.1996fanrui.agents-sandbox.user.team", "a")));
  EXPECT_EQ(network_labels("inst", "box-1", {}), primary_labels("inst", "box-1", {}));
}

}  // namespace
}  // namespace agbox
