// SPDX-License-Identifier: Apache-2.0
#include "isolation/firewall.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/failpoint.h"
#include "isolation/table_difference.h"

namespace agbox {
namespace {

// Whoever else changes the same tables does so between our look and our change.
constexpr int kReplaceAttempts = 5;

bool is_about_a_table(const nft::Refusal& refusal) {
  return refusal.what.starts_with("add table") || refusal.what.starts_with("delete table");
}

}  // namespace

Firewall::Firewall(FirewallOptions options, nft::PacketFilter filter)
    : options_(std::move(options)), filter_(std::move(filter)) {
  want({});
}

Result<Firewall> Firewall::open(FirewallOptions options) {
  AGBOX_TRY(filter, nft::PacketFilter::open());
  return Firewall(std::move(options), std::move(filter));
}

Result<> Firewall::load(const HostNetwork& host) {
  want(host);
  AGBOX_TRY_VOID(replace(all_tables()));
  follows_ = true;
  return verify();
}

Result<> Firewall::follow(const HostNetwork& host) {
  if (follows_ && host == host_) return {};
  want(host);
  follows_ = false;
  nft::Batch batch;
  for (const nft::Table& table : all_tables()) {
    if (table.sets.empty()) continue;
    for (const nft::Set& set : host_sets(host)) batch.replace_elements(table.name, set);
  }
  if (!filter_.apply(batch)) {
    // Somebody has taken a table or a set away: all of it, anew.
    AGBOX_TRY_VOID(replace(all_tables()));
  }
  follows_ = true;
  return {};
}

Result<> Firewall::verify() {
  if (AGBOX_FAILPOINT_FAILS("isolation.damage")) AGBOX_TRY_VOID(damage());
  AGBOX_TRY(seen, filter_.read(table_names()));
  const auto what = nft::difference(all_tables(), seen);
  if (!what) return {};
  return fail(Reason::Internal, "the firewall of the sandboxes is not as it should be: " + *what +
                                    "; something else on this host changes it, see: nft monitor");
}

Result<std::optional<std::string>> Firewall::repair() {
  AGBOX_TRY(seen, filter_.read(table_names()));
  auto what = nft::difference(all_tables(), seen);
  if (!what) return what;
  AGBOX_FAILPOINT("isolation.before_repair");
  // The owned ones go on filtering while the plain ones come back.
  const bool owned_hold = !nft::difference(wanted_.owned, seen);
  AGBOX_TRY_VOID(replace(owned_hold ? wanted_.plain : all_tables()));
  return what;
}

// What nobody else could do to the owned copy.
Result<> Firewall::damage() {
  nft::Batch batch;
  for (const nft::Table& table : all_tables()) {
    if (table.sets.empty()) continue;
    for (const nft::Set& set : host_sets({})) batch.replace_elements(table.name, set);
  }
  if (auto applied = filter_.apply(batch); !applied) {
    return std::unexpected(std::move(applied.error().error));
  }
  return {};
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

void Firewall::want(const HostNetwork& host) {
  host_ = host;
  wanted_ = make_ruleset({.instance_id = options_.instance_id,
                          .address_pool = options_.address_pool,
                          .persist = kernel_has_persist_},
                         host_);
}

std::vector<nft::Table> Firewall::all_tables() const {
  std::vector<nft::Table> tables = wanted_.plain;
  tables.insert(tables.end(), wanted_.owned.begin(), wanted_.owned.end());
  return tables;
}

Result<> Firewall::replace(const std::vector<nft::Table>& tables) {
  std::vector<nft::TableName> names;
  for (const nft::Table& table : tables) names.push_back(table.name);
  for (int attempt = 1;; ++attempt) {
    AGBOX_TRY(existing, filter_.existing(names));
    nft::Batch batch;
    for (const nft::TableName& name : existing) batch.delete_table(name);
    for (const nft::Table& table : tables) batch.add_table(table);
    const auto applied = filter_.apply(batch);
    if (applied) return {};
    const nft::Refusal& refusal = applied.error();
    const bool unknown_flag = refusal.number == EOPNOTSUPP || refusal.number == EINVAL;
    if (is_about_a_table(refusal) && unknown_flag && kernel_has_persist_) {
      kernel_has_persist_ = false;
      want(host_);
      return replace(all_tables());
    }
    const bool raced = refusal.number == ENOENT || refusal.number == EEXIST;
    if (!is_about_a_table(refusal) || !raced || attempt == kReplaceAttempts) {
      return std::unexpected(refusal.error);
    }
  }
}

}  // namespace agbox
