// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/table_difference.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "isolation/nft/netfilter.h"
#include "isolation/nft/ruleset.h"

namespace agbox {
namespace {

nft::Table some_table() {
  HostNetwork host;
  host.uplinks = {"lan0", "wan0"};
  return make_ruleset({.instance_id = "0a0b0c0d",
                       .address_pool = parse_ipv4_network("10.213.0.0/16").value()},
                      host)
      .plain[0];
}

template <class Part>
Part& named(std::vector<Part>& parts, const std::string& name) {
  return *std::ranges::find(parts, name, &Part::name);
}

std::string changed_by(const std::function<void(nft::Table&)>& change) {
  nft::Table seen = some_table();
  change(seen);
  return nft::difference(some_table(), seen).value_or("the same");
}

const std::string kTable =
    "table inet agents_sandbox_" + std::to_string(::getuid()) + "_0a0b0c0d: ";

TEST(TableDifference, IgnoresTheOrderOfNamedParts) {
  EXPECT_EQ(changed_by([](nft::Table& seen) {
              std::ranges::reverse(seen.chains);
              std::ranges::reverse(seen.sets);
              std::ranges::reverse(named(seen.sets, "uplinks").elements);
            }),
            "the same");
}

TEST(TableDifference, IgnoresElementsAddedAtRunTime) {
  EXPECT_EQ(changed_by([](nft::Table& seen) {
              named(seen.sets, "budget").elements.push_back({.key = nft::Bytes(16)});
            }),
            "the same");
}

TEST(TableDifference, NamesEveryOtherChange) {
  EXPECT_EQ(changed_by([](nft::Table& seen) { named(seen.chains, "input").rules.pop_back(); }),
            kTable + "chain input has 4 rules instead of 5");
  EXPECT_EQ(changed_by([](nft::Table& seen) {
              auto& rules = named(seen.chains, "input").rules;
              std::swap(rules[0], rules[1]);
            }),
            kTable + "chain input has a different rule 1");
  EXPECT_EQ(changed_by([](nft::Table& seen) { named(seen.chains, "pre").hook->priority = 7; }),
            kTable + "chain pre has a different hook");
  EXPECT_EQ(changed_by([](nft::Table& seen) { named(seen.chains, "pre").hook.reset(); }),
            kTable + "chain pre has a different hook");
  EXPECT_EQ(changed_by([](nft::Table& seen) { seen.chains.pop_back(); }),
            kTable + "chain output is missing");
  EXPECT_EQ(changed_by([](nft::Table& seen) {
              seen.chains.push_back({.name = "mine", .hook = {}, .rules = {}});
            }),
            kTable + "chain mine is unexpected");
  EXPECT_EQ(changed_by([](nft::Table& seen) { named(seen.sets, "uplinks").elements.pop_back(); }),
            kTable + "set uplinks has different elements");
  EXPECT_EQ(changed_by([](nft::Table& seen) { named(seen.sets, "budget").size = 1; }),
            kTable + "set budget has a different type");
  EXPECT_EQ(changed_by([](nft::Table& seen) { seen.timeouts.front().seconds.back() = 7; }),
            kTable + "timeouts tcp_timeouts differ");
  EXPECT_EQ(changed_by([](nft::Table& seen) { seen.timeouts.clear(); }),
            kTable + "timeouts tcp_timeouts is missing");
  EXPECT_EQ(changed_by([](nft::Table& seen) { seen.flags = NFT_TABLE_F_DORMANT; }),
            kTable + "its flags differ");
}

TEST(TableDifference, EachWantedTableMustBeSeen) {
  const std::vector<nft::Table> wanted{some_table()};
  EXPECT_EQ(nft::difference(wanted, {}), kTable.substr(0, kTable.size() - 2) + " is missing");
  EXPECT_EQ(nft::difference(wanted, wanted), std::nullopt);
}

}  // namespace
}  // namespace agbox
