// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/dropping_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isolation/nft/netfilter.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kBridges = "agbxabcd";

nft::Bytes bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

nft::Rule interface_rule(std::uint32_t which, nft::Bytes name, std::int32_t verdict = NF_ACCEPT) {
  return {nft::LoadMeta{which}, nft::Compare{.equal = true, .value = std::move(name)}, nft::Count{},
          nft::Verdict{.code = verdict, .chain = {}}};
}

nft::Table table_with(std::vector<nft::Rule> rules, nft::Hook hook) {
  return {.name = {.family = NFPROTO_INET, .name = "filter"},
          .flags = 0,
          .sets = {},
          .chains = {{.name = "forward", .hook = std::move(hook), .rules = std::move(rules)}}};
}

constexpr std::uint32_t kDrop = NF_DROP;

std::vector<DroppingChain> seen_with(std::vector<nft::Rule> rules) {
  const std::vector tables = {
      table_with(std::move(rules),
                 {.type = "filter", .number = NF_INET_FORWARD, .priority = 0, .policy = kDrop})};
  return dropping_chains_of(tables, kBridges);
}

DroppingChain chain(bool accepts_nothing, bool accepts_sandboxes) {
  return {.table = "inet filter",
          .chain = "forward",
          .accepts_nothing = accepts_nothing,
          .accepts_sandboxes = accepts_sandboxes};
}

TEST(DroppingChains, AreAtTheForwardHookWithPolicyDrop) {
  EXPECT_THAT(seen_with({}), ElementsAre(chain(true, false)));
  const nft::Hook accepting{
      .type = "filter", .number = NF_INET_FORWARD, .priority = 0, .policy = NF_ACCEPT};
  const nft::Hook elsewhere{
      .type = "filter", .number = NF_INET_LOCAL_IN, .priority = 0, .policy = kDrop};
  for (const nft::Hook& hook : {accepting, elsewhere}) {
    EXPECT_THAT(dropping_chains_of(std::vector{table_with({}, hook)}, kBridges), IsEmpty());
  }
  nft::Table jumped_to = table_with({}, accepting);
  jumped_to.chains[0].hook.reset();
  EXPECT_THAT(dropping_chains_of(std::vector{jumped_to}, kBridges), IsEmpty());
}

// The engine's own chains are recognized by this name.
TEST(DroppingChains, AreNamedWithTheFamilyOfTheirTable) {
  nft::Table table =
      table_with({}, {.type = "filter", .number = NF_INET_FORWARD, .priority = 0, .policy = kDrop});
  table.name.family = NFPROTO_IPV4;
  const auto chains = dropping_chains_of(std::vector{table}, kBridges);
  ASSERT_EQ(chains.size(), 1U);
  EXPECT_EQ(chains[0].table, "ip filter");
}

TEST(DroppingChains, AcceptNothingIfNoRuleCanLeadToAnAccept) {
  const nft::Rule drop = {nft::Verdict{.code = NF_DROP, .chain = {}}};
  const nft::Rule refuse = {nft::Count{}, nft::Reject{}};
  EXPECT_THAT(seen_with({drop, refuse}), ElementsAre(chain(true, false)));
  for (const std::int32_t verdict :
       {std::int32_t{NF_ACCEPT}, std::int32_t{NFT_JUMP}, std::int32_t{NFT_GOTO}}) {
    EXPECT_THAT(seen_with({drop, {nft::Verdict{.code = verdict, .chain = {}}}}),
                ElementsAre(chain(false, false)))
        << verdict;
  }
  EXPECT_THAT(seen_with({{nft::Foreign{"lookup"}}}), ElementsAre(chain(false, false)));
}

TEST(DroppingChains, AcceptSandboxesIfBothDirectionsOfAllBridgesAreAccepted) {
  const auto from = interface_rule(NFT_META_IIFNAME, bytes("agbx"));
  const auto to = interface_rule(NFT_META_OIFNAME, bytes("agbxabcd"));
  EXPECT_THAT(seen_with({from, to}), ElementsAre(chain(false, true)));
  EXPECT_THAT(seen_with({from}), ElementsAre(chain(false, false)));
  EXPECT_THAT(seen_with({to}), ElementsAre(chain(false, false)));
}

TEST(DroppingChains, DoNotAcceptSandboxesIfARuleHasFurtherConditions) {
  const auto to = interface_rule(NFT_META_OIFNAME, bytes("agbx"));
  const auto of_one = interface_rule(NFT_META_IIFNAME, bytes("agbxabcd0000001"));
  const auto of_others = interface_rule(NFT_META_IIFNAME, bytes("br-"));
  const auto dropping = interface_rule(NFT_META_IIFNAME, bytes("agbx"), NF_DROP);
  auto of_all_but = interface_rule(NFT_META_IIFNAME, bytes("agbx"));
  std::get<nft::Compare>(of_all_but[1]).equal = false;
  auto with_more = interface_rule(NFT_META_IIFNAME, bytes("agbx"));
  with_more.insert(with_more.begin() + 2,
                   {nft::LoadMeta{NFT_META_L4PROTO}, nft::Compare{.equal = true, .value = {6}}});
  for (const nft::Rule& rule : {of_one, of_others, dropping, of_all_but, with_more}) {
    EXPECT_THAT(seen_with({rule, to}), ElementsAre(chain(false, false)));
  }
}

}  // namespace
}  // namespace agbox
