// SPDX-License-Identifier: Apache-2.0
#include "isolation/firewall.h"

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "base/failpoint.h"
#include "isolation/firewall_faults.h"
#include "isolation/nft/dropping_chains.h"
#include "isolation/nft/table_difference.h"
#include "model/object_names.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// Another process may change the same tables between our read and our transaction.
constexpr int kReplaceAttempts = 5;

bool concerns_timeouts(const nft::Refusal& refusal) {
  return refusal.what.starts_with("add timeouts");
}

bool concerns_table(const nft::Refusal& refusal) {
  return refusal.what.starts_with("add table") || refusal.what.starts_with("delete table");
}

}  // namespace

Firewall::Firewall(FirewallOptions options, nft::PacketFilter filter)
    : options_(std::move(options)), filter_(std::move(filter)) {
  set_wanted({});
}

Result<Firewall> Firewall::open(FirewallOptions options) {
  AGBOX_TRY(filter, nft::PacketFilter::open());
  return Firewall(std::move(options), std::move(filter));
}

Result<> Firewall::load(const HostNetwork& host) {
  set_wanted(host);
  AGBOX_TRY_VOID(replace_both());
  follows_ = true;
  return verify();
}

Result<bool> Firewall::follow(const HostNetwork& host) {
  if (follows_ && host == host_) return false;
  set_wanted(host);
  follows_ = false;
  nft::Batch batch;
  for (const nft::Table& table : all_tables()) {
    if (table.sets.empty()) continue;
    for (const nft::Set& set : host_sets(host)) batch.replace_elements(table.name, set);
  }
  const bool was_applied = filter_.apply(batch).has_value();
  // If not, another process has removed a table or a set: replace everything.
  if (!was_applied) AGBOX_TRY_VOID(replace_both());
  follows_ = true;
  return !was_applied;
}

Result<> Firewall::verify() {
  const auto put_tables = [this](const std::vector<nft::Table>& tables) -> Result<> {
    if (auto done = put(tables); !done) return std::unexpected(done.error().error);
    return {};
  };
  AGBOX_TRY_VOID(firewall_faults::damage(all_tables(), put_tables));
  if (firewall_faults::verifies_blindly()) return {};
  AGBOX_TRY(seen, filter_.read(table_names()));
  const auto what = nft::difference(all_tables(), seen);
  if (!what) return {};
  return fail(reason::kIsolationUnavailable, "the sandbox firewall is not as expected: " + *what +
                                                 "; find what changes it with: nft monitor");
}

Result<FirewallFacts> Firewall::inspect() {
  AGBOX_TRY(seen, filter_.read(table_names()));
  AGBOX_TRY(forwarding, filter_.read_forward_chains());
  FirewallFacts facts;
  for (const nft::Table& table : all_tables()) {
    facts.tables.push_back(
        {.name = table.name.text(),
         .difference = nft::difference(std::span(&table, 1), seen).value_or("")});
  }
  facts.dropping_chains = dropping_chains_of(forwarding, bridge_prefix(options_.instance_id));
  return facts;
}

Result<std::optional<std::string>> Firewall::repair() {
  AGBOX_TRY(seen, filter_.read(table_names()));
  auto what = nft::difference(all_tables(), seen);
  if (!what) return what;
  AGBOX_FAILPOINT("isolation.before_repair");
  const bool owned_hold = !nft::difference(wanted_.owned, seen);
  AGBOX_TRY_VOID(owned_hold ? replace(&Ruleset::plain) : replace_both());
  return what;
}

Result<Firewall::CountMark> Firewall::begin_count(const std::string& bridge) {
  nft::Batch batch;
  for (const nft::TableName& table : counting_tables()) {
    batch.add_counting_element(table, std::string(kProofsSet), interface_key(bridge));
  }
  if (auto applied = filter_.apply(batch); !applied) {
    return std::unexpected(std::move(applied.error().error));
  }
  ++counting_[bridge];
  auto packets = packets_counted(bridge);
  if (!packets) {
    release_count(bridge);
    return std::unexpected(std::move(packets.error()));
  }
  return CountMark{.packets = std::move(*packets), .replacements = replacements_};
}

Result<std::optional<std::uint64_t>> Firewall::end_count(const std::string& bridge,
                                                         const CountMark& mark) {
  const auto packets = packets_counted(bridge);
  release_count(bridge);
  if (!packets) return std::unexpected(packets.error());
  if (mark.replacements != replacements_) return std::optional<std::uint64_t>{};
  std::uint64_t refused = 0;
  for (std::size_t i = 0; i < packets->size(); ++i) {
    if ((*packets)[i] > mark.packets[i]) refused += (*packets)[i] - mark.packets[i];
  }
  return refused;
}

void Firewall::release_count(const std::string& bridge) {
  if (--counting_[bridge] > 0) return;
  counting_.erase(bridge);
  nft::Batch batch;
  for (const nft::TableName& table : counting_tables()) {
    batch.delete_element(table, std::string(kProofsSet), interface_key(bridge));
  }
  // If refused, a table was replaced, which dropped the element; one that remains in the other
  // table only counts.
  static_cast<void>(filter_.apply(batch));
}

Result<std::vector<std::uint64_t>> Firewall::packets_counted(const std::string& bridge) {
  std::vector<std::uint64_t> packets;
  for (const nft::TableName& table : counting_tables()) {
    AGBOX_TRY(count, filter_.count(table, std::string(kProofsSet), interface_key(bridge)));
    packets.push_back(count.value_or(0));
  }
  return packets;
}

std::vector<nft::TableName> Firewall::counting_tables() const {
  std::vector<nft::TableName> names;
  for (const nft::Table& table : all_tables()) {
    const bool counts =
        std::ranges::find(table.sets, kProofsSet, &nft::Set::name) != table.sets.end();
    if (counts) names.push_back(table.name);
  }
  return names;
}

Result<> Firewall::remove() {
  const auto names = table_names();
  AGBOX_TRY(existing, filter_.existing(names));
  if (existing.empty()) return {};
  nft::Batch batch;
  for (const nft::TableName& name : existing) batch.delete_table(name);
  if (auto applied = filter_.apply(batch); !applied) {
    return std::unexpected(std::move(applied.error().error));
  }
  return {};
}

std::vector<nft::TableName> Firewall::table_names() const {
  std::vector<nft::TableName> names;
  for (const nft::Table& table : all_tables()) names.push_back(table.name);
  return names;
}

void Firewall::set_wanted(const HostNetwork& host) {
  host_ = host;
  wanted_ = make_ruleset({.instance_id = options_.instance_id,
                          .address_pool = options_.address_pool,
                          .persist = kernel_has_persist_,
                          .timeouts = kernel_has_timeouts_},
                         host_);
}

bool Firewall::can_do_without(const nft::Refusal& refusal) {
  const bool is_unknown = refusal.number == EOPNOTSUPP || refusal.number == EINVAL;
  if (kernel_has_persist_ && concerns_table(refusal) && is_unknown) {
    kernel_has_persist_ = false;
  } else if (kernel_has_timeouts_ && concerns_timeouts(refusal) &&
             (is_unknown || refusal.number == ENOENT)) {
    kernel_has_timeouts_ = false;
  } else {
    return false;
  }
  set_wanted(host_);
  return true;
}

std::vector<nft::Table> Firewall::all_tables() const {
  std::vector<nft::Table> tables = wanted_.plain;
  tables.insert(tables.end(), wanted_.owned.begin(), wanted_.owned.end());
  return tables;
}

// While a transaction takes effect, packets may see the new rules with empty sets, and no longer
// the old ones. So one copy always stays unchanged.
Result<> Firewall::replace_both() {
  AGBOX_TRY_VOID(replace(&Ruleset::owned));
  return replace(&Ruleset::plain);
}

Result<> Firewall::replace(Copy copy) {
  auto replaced = put(wanted_.*copy);
  while (!replaced && can_do_without(replaced.error())) replaced = put(wanted_.*copy);
  if (!replaced) return std::unexpected(std::move(replaced.error().error));
  return {};
}

std::expected<void, nft::Refusal> Firewall::put(const std::vector<nft::Table>& tables) {
  std::vector<nft::TableName> names;
  for (const nft::Table& table : tables) {
    names.push_back(table.name);
    const auto refuse = [](std::string what) {
      return std::unexpected(
          nft::Refusal{.error = Error(reason::kIsolationUnavailable, "failpoint"),
                       .number = EOPNOTSUPP,
                       .what = std::move(what)});
    };
    const bool persists = (table.flags & nft::kTablePersist) != 0;
    if (persists && AGBOX_FAILPOINT_FAILS("isolation.persist")) return refuse("add table");
    const bool has_timeouts = !table.timeouts.empty();
    if (has_timeouts && AGBOX_FAILPOINT_FAILS("isolation.timeouts")) return refuse("add timeouts");
  }
  for (int attempt = 1;; ++attempt) {
    auto existing = filter_.existing(names);
    if (!existing) {
      return std::unexpected(nft::Refusal{.error = std::move(existing.error()), .what = {}});
    }
    nft::Batch batch;
    for (const nft::TableName& name : *existing) batch.delete_table(name);
    for (const nft::Table& table : tables) batch.add_table(table);
    auto applied = filter_.apply(batch);
    if (applied) {
      ++replacements_;
      return {};
    }
    const nft::Refusal& refusal = applied.error();
    const bool raced = refusal.number == ENOENT || refusal.number == EEXIST;
    if (!concerns_table(refusal) || !raced || attempt == kReplaceAttempts) return applied;
  }
}

}  // namespace agbox
