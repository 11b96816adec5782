// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/dropping_chains.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

#include "isolation/nft/netfilter.h"

namespace agbox {
namespace {

bool is_verdict(const nft::Step& step, std::int32_t code) {
  const auto* verdict = std::get_if<nft::Verdict>(&step);
  return verdict != nullptr && verdict->code == code;
}

// An expression that we cannot decode (a verdict map, for example) may lead to an accept.
bool may_accept(const nft::Rule& rule) {
  return std::ranges::any_of(rule, [](const nft::Step& step) {
    return std::holds_alternative<nft::Foreign>(step) || is_verdict(step, NF_ACCEPT) ||
           is_verdict(step, NF_QUEUE) || is_verdict(step, NFT_JUMP) || is_verdict(step, NFT_GOTO);
  });
}

// True if it accepts all packets of interfaces with our bridges' prefix, without further
// conditions.
bool accepts_bridges(const nft::Rule& rule, std::uint32_t which_interface,
                     std::string_view our_bridges) {
  nft::Rule steps = rule;
  std::erase_if(steps,
                [](const nft::Step& step) { return std::holds_alternative<nft::Count>(step); });
  if (steps.size() != 3 || !is_verdict(steps[2], NF_ACCEPT)) return false;
  const auto* load = std::get_if<nft::LoadMeta>(steps.data());
  const auto* compare = std::get_if<nft::Compare>(&steps[1]);
  if (load == nullptr || load->key != which_interface || compare == nullptr) return false;
  const std::string name(compare->value.begin(), compare->value.end());
  return compare->equal && our_bridges.starts_with(name);
}

bool any_accepts_bridges(const nft::Chain& chain, std::uint32_t which_interface,
                         std::string_view our_bridges) {
  return std::ranges::any_of(chain.rules, [&](const nft::Rule& rule) {
    return accepts_bridges(rule, which_interface, our_bridges);
  });
}

}  // namespace

std::vector<DroppingChain> dropping_chains_of(std::span<const nft::Table> tables,
                                              std::string_view our_bridges) {
  std::vector<DroppingChain> found;
  for (const nft::Table& table : tables) {
    for (const nft::Chain& chain : table.chains) {
      const bool drops = chain.hook && chain.hook->number == NF_INET_FORWARD &&
                         chain.hook->type == "filter" && chain.hook->policy == NF_DROP;
      if (!drops) continue;
      found.push_back(
          {.table = table.name.text(),
           .chain = chain.name,
           .accepts_nothing = std::ranges::none_of(chain.rules, may_accept),
           .accepts_sandboxes = any_accepts_bridges(chain, NFT_META_IIFNAME, our_bridges) &&
                                any_accepts_bridges(chain, NFT_META_OIFNAME, our_bridges)});
    }
  }
  return found;
}

}  // namespace agbox
