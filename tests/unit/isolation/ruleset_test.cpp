// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/ruleset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

#include "isolation/nft/netfilter.h"
#include "isolation/nft/nft_steps.h"
#include "model/object_names.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kInstance[] = "0a0b0c0d-1111-4222-8333-444455556666";

RulesetOptions some_options() {
  return {.instance_id = kInstance,
          .address_pool = parse_ipv4_network("10.213.0.0/16").value(),
          .persist = true};
}

Ruleset some_ruleset(const HostNetwork& host = {}) {
  return make_ruleset(some_options(), host);
}

const nft::Set& set_named(const nft::Table& table, const std::string& name) {
  return *std::ranges::find(table.sets, name, &nft::Set::name);
}

std::vector<std::string> shown(const nft::Set& set) {
  std::vector<std::string> texts;
  for (const nft::Element& element : set.elements) {
    std::uint32_t value = 0;
    for (const std::uint8_t byte : element.key) value = value << 8 | byte;
    texts.push_back((element.ends_interval ? "before " : "") + Ipv4Address{value}.text());
  }
  return texts;
}

TEST(Ruleset, TablesAreNamedAfterTheUserAndTheInstance) {
  const Ruleset ruleset = some_ruleset();
  const std::string name = "agents_sandbox_" + std::to_string(::getuid()) + "_0a0b0c0d";
  EXPECT_EQ(ruleset.plain[0].name.text(), "inet " + name);
  EXPECT_EQ(ruleset.plain[1].name.text(), "arp " + name);
  EXPECT_EQ(ruleset.owned[0].name.text(), "inet " + name + "_owned");
  EXPECT_EQ(ruleset.owned[1].name.text(), "arp " + name + "_owned");
}

// Other traffic must not be affected: each hooked chain matches our bridges, in its first rule or
// in every rule.
TEST(Ruleset, EveryHookedChainBeginsWithTheBridges) {
  const std::string prefix = bridge_prefix(kInstance);
  const nft::Bytes bytes(prefix.begin(), prefix.end());
  for (const nft::Table& table : some_ruleset().plain) {
    for (const nft::Chain& chain : table.chains) {
      if (!chain.hook) continue;
      EXPECT_EQ(chain.hook->policy, static_cast<std::uint32_t>(NF_ACCEPT)) << chain.name;
      ASSERT_GE(chain.rules.front().size(), 2U) << chain.name;
      const auto* compare = std::get_if<nft::Compare>(&chain.rules.front()[1]);
      ASSERT_NE(compare, nullptr) << chain.name;
      EXPECT_EQ(compare->value, bytes) << chain.name;
    }
  }
}

TEST(Ruleset, TheOwnedCopyHasTheSameRulesButForTheLimits) {
  Ruleset ruleset = some_ruleset();
  nft::Table& plain = ruleset.plain[0];
  const nft::Table& owned = ruleset.owned[0];
  std::erase_if(plain.sets,
                [](const nft::Set& set) { return set.name == "budget" || set.name == "rate"; });
  const auto admit = std::ranges::find(plain.chains, "admit", &nft::Chain::name);
  ASSERT_NE(admit, plain.chains.end());
  ASSERT_EQ(admit->rules.size(), 5U);
  admit->rules.erase(admit->rules.begin(), admit->rules.end() - 1);
  EXPECT_EQ(plain.sets, owned.sets);
  EXPECT_EQ(plain.timeouts.size(), 1U);
  EXPECT_THAT(owned.timeouts, IsEmpty());
  EXPECT_EQ(plain.chains, owned.chains);
  EXPECT_EQ(ruleset.plain[1].chains, ruleset.owned[1].chains);
  EXPECT_EQ(plain.flags, 0U);
  EXPECT_EQ(owned.flags, nft::kTableOwner | nft::kTablePersist);
}

TEST(Ruleset, KernelsWithoutTimeoutsGetTheRestOfTheLimits) {
  RulesetOptions options = some_options();
  options.timeouts = false;
  const nft::Table plain = make_ruleset(options, {}).plain[0];
  EXPECT_THAT(plain.timeouts, IsEmpty());
  EXPECT_EQ(std::ranges::find(plain.chains, "admit", &nft::Chain::name)->rules.size(), 4U);
}

TEST(Ruleset, EveryLookupAndJumpFindsItsTarget) {
  const Ruleset ruleset = some_ruleset();
  for (const nft::Table& table : {ruleset.plain[0], ruleset.owned[0]}) {
    for (const nft::Chain& chain : table.chains) {
      for (const nft::Rule& rule : chain.rules) {
        for (const nft::Step& step : rule) {
          if (const auto* lookup = std::get_if<nft::Lookup>(&step)) {
            EXPECT_NE(std::ranges::find(table.sets, lookup->set, &nft::Set::name),
                      table.sets.end());
          }
          if (const auto* used = std::get_if<nft::UseTimeouts>(&step)) {
            EXPECT_NE(std::ranges::find(table.timeouts, used->timeouts, &nft::Timeouts::name),
                      table.timeouts.end());
          }
          const auto* verdict = std::get_if<nft::Verdict>(&step);
          if (verdict == nullptr || verdict->chain.empty()) continue;
          EXPECT_NE(std::ranges::find(table.chains, verdict->chain, &nft::Chain::name),
                    table.chains.end());
        }
      }
    }
  }
}

TEST(Ruleset, OverlappingOrAdjacentNetworksAreMerged) {
  HostNetwork host;
  for (const char* text : {"203.0.113.0/24", "198.51.100.128/25", "198.51.100.0/24",
                           "203.0.112.0/24", "203.0.113.64/26"}) {
    host.on_link.push_back(parse_ipv4_network(text).value());
  }
  const Ruleset ruleset = some_ruleset(host);
  EXPECT_THAT(
      shown(set_named(ruleset.plain[0], "onlink")),
      ElementsAre("198.51.100.0", "before 198.51.101.0", "203.0.112.0", "before 203.0.114.0"));
}

TEST(Ruleset, AnIntervalToTheLastAddressHasNoEndElement) {
  const Ruleset ruleset = some_ruleset();
  EXPECT_EQ(shown(set_named(ruleset.plain[0], "blocked")).back(), "224.0.0.0");
}

TEST(Ruleset, ElementsAreUnique) {
  HostNetwork host;
  host.uplinks = {"lan0", "wan0", "lan0"};
  host.resolvers = {parse_ipv4_address("9.9.9.9").value(), parse_ipv4_address("9.9.9.9").value()};
  const Ruleset ruleset = some_ruleset(host);
  EXPECT_EQ(set_named(ruleset.owned[0], "uplinks").elements.size(), 2U);
  EXPECT_THAT(shown(set_named(ruleset.owned[0], "resolvers")), ElementsAre("9.9.9.9"));
  EXPECT_THAT(set_named(ruleset.owned[0], "onlink").elements, IsEmpty());
}

TEST(Ruleset, EveryStepSurvivesARoundTrip) {
  for (const nft::Table& table : some_ruleset().plain) {
    for (const nft::Chain& chain : table.chains) {
      for (const nft::Rule& rule : chain.rules) {
        for (const nft::Step& step : rule) {
          EXPECT_EQ(nft::decode_step(nft::encode_step(step).get()), step) << chain.name;
        }
      }
    }
  }
}

TEST(Ruleset, AnUnknownStepIsForeign) {
  const auto expression = nft::make_expression_object("masq");
  EXPECT_EQ(nft::decode_step(expression.get()), nft::Step(nft::Foreign{"masq"}));
}

}  // namespace
}  // namespace agbox
