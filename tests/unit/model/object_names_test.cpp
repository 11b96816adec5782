// SPDX-License-Identifier: Apache-2.0
#include "model/object_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

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

TEST(ObjectNames, OfCompanionsReplaceWhatClientsReplace) {
  EXPECT_EQ(companion_container_name("My_box-1", "db"), "agbox-cc-My_box-1-db");
  EXPECT_EQ(companion_container_name("a.b", "c/d\\e:f g_h"), "agbox-cc-a-b-c-d-e-f-g_h");
}

TEST(ObjectNames, OfTwoCompanionsThatMeetCanBeToldApart) {
  EXPECT_EQ(companion_container_name("team-a", "b"), companion_container_name("team", "a-b"));
  const std::string one = distinct_companion_container_name("team-a", "b");
  EXPECT_NE(one, distinct_companion_container_name("team", "a-b"));
  EXPECT_EQ(one, distinct_companion_container_name("team-a", "b"));
  EXPECT_THAT(one, testing::MatchesRegex("agbox-cc-team-a-b-[0-9a-f]{8}"));
}

TEST(BridgeName, FillsAnInterfaceNameAndStartsWithTheInstancesPrefix) {
  const std::string name = bridge_name(kInstance, "box-1");
  EXPECT_EQ(name.size(), 15U);
  EXPECT_THAT(name, testing::StartsWith(bridge_prefix(kInstance)));
  EXPECT_EQ(name, bridge_name(kInstance, "box-1"));
  EXPECT_NE(bridge_prefix(kInstance), bridge_prefix("1a0b0c0d-0000-4000-8000-000000000000"));
}

// Every user can choose the instance ID, but not the user ID.
TEST(BridgeName, OfOneUserNeverBeginsWithThePrefixOfAnother) {
  const std::vector<std::uint32_t> uids = {
      0,       1,       63,         64,         999,        1000,       1001,      2047,
      2048,    2049,    65533,      65534,      65535,      100000,     4194303,   4194304,
      4194305, 1 << 26, 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000, 0xfffffffe};
  // The part of the user alone: what follows it is the instance's, and can be anything.
  const auto user_part = [](std::uint32_t uid) {
    std::string common = bridge_prefix("0", uid);
    for (int i = 1; i < 1000; ++i) {
      const std::string other = bridge_prefix(std::to_string(i), uid);
      const auto differ = std::ranges::mismatch(common, other);
      common.erase(differ.in1, common.end());
    }
    return common;
  };
  for (const std::uint32_t one : uids) {
    for (const std::uint32_t other : uids) {
      if (one == other) continue;
      EXPECT_FALSE(user_part(other).starts_with(user_part(one))) << one << " and " << other;
    }
  }
}

TEST(BridgeName, LeavesRoomForInstancesAndSandboxesOfEveryUser) {
  for (const std::uint32_t uid : {0U, 1000U, 65534U, 100000U, 0xfffffffeU}) {
    const std::string name = bridge_name(kInstance, "box-1", uid);
    EXPECT_EQ(name.size(), 15U);
    EXPECT_THAT(name, testing::StartsWith(bridge_prefix(kInstance, uid)));
    EXPECT_LE(bridge_prefix(kInstance, uid).size(), 11U);
  }
  EXPECT_EQ(bridge_prefix(kInstance, 1000).size(), 9U);
}

TEST(BridgeName, DiffersBetweenManySandboxes) {
  std::set<std::string> names;
  for (int i = 0; i < 4096; ++i)
    names.insert(bridge_name(kInstance, "sandbox-" + std::to_string(i), 65534));
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
  EXPECT_THAT(
      companion_labels("inst", "box-1", "db", {{"team", "a"}}),
      ElementsAre(Pair("io.github.1996fanrui.agents-sandbox.companion-container-name", "db"),
                  Pair("io.github.1996fanrui.agents-sandbox.component", "companion"),
                  Pair("io.github.1996fanrui.agents-sandbox.instance", "inst"),
                  Pair("io.github.1996fanrui.agents-sandbox.sandbox-id", "box-1"),
                  Pair("io.github.1996fanrui.agents-sandbox.user.team", "a")));
}

TEST(Labels, OfACompanionAreItsAlone) {
  EXPECT_EQ(companion_of(companion_labels("inst", "box-1", "db", {})), "db");
  EXPECT_EQ(companion_of(primary_labels("inst", "box-1", {})), std::nullopt);
  EXPECT_EQ(companion_of({}), std::nullopt);
  EXPECT_EQ(companion_of({{companion_label(), "db"}}), std::nullopt);
}

}  // namespace
}  // namespace agbox
