// SPDX-License-Identifier: Apache-2.0
// The firewall of one instance's sandboxes: holds what is wanted, puts it into the kernel and
// compares. Two copies of every table: docs/decisions/0030-two-tables.md says why. Every call
// blocks for about a millisecond and is for one thread.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/firewall_facts.h"
#include "isolation/nft/packet_filter.h"
#include "isolation/nft/ruleset.h"

namespace agbox {

struct FirewallOptions {
  std::string instance_id;
  Ipv4Network address_pool;
};

class Firewall {
 public:
  static Result<Firewall> open(FirewallOptions options);

  // Puts both copies in place of whatever is there, and reads them back. They stay in the kernel
  // when this object goes; the owned ones where the kernel knows how.
  Result<> load(const HostNetwork& host);

  // Both copies with what the host has become. Nothing happens where nothing changed.
  Result<> follow(const HostNetwork& host);

  // Whether the kernel shows exactly what is wanted; the error says what is different.
  Result<> verify();

  // Each table of ours beside what is wanted of it, and the chains of others that cut sandboxes
  // off.
  Result<FirewallFacts> look();

  // Puts back what is different; the answer says what it was, and is nothing where all is well.
  Result<std::optional<std::string>> repair();

  // From begin_count() to end_count(), connections to this host that are refused to one bridge are
  // counted. Several may count at the same bridge.
  struct CountMark {
    std::vector<std::uint64_t> packets;  // by table
    unsigned replacements = 0;
  };
  Result<CountMark> begin_count(const std::string& bridge);
  // How many packets were refused since. Nothing where it is not known, because tables were put
  // back meanwhile.
  Result<std::optional<std::uint64_t>> end_count(const std::string& bridge, const CountMark& mark);

  // Takes both copies away: for a daemon that ends and has no sandbox left.
  Result<> remove();

  // How often tables were put in place of others.
  unsigned replacements() const { return replacements_; }
  const HostNetwork& host() const { return host_; }
  // Of every table, to tell its changes from others'.
  std::vector<nft::TableName> table_names() const;
  std::uint32_t port_id() const { return filter_.port_id(); }

 private:
  Firewall(FirewallOptions options, nft::PacketFilter filter);
  using Copy = std::vector<nft::Table> Ruleset::*;

  void want(const HostNetwork& host);
  // Both, one after the other: each of them filters while the other one is replaced.
  Result<> replace_both();
  Result<> replace(Copy copy);
  // These tables instead of those with their names, in one transaction.
  std::expected<void, nft::Refusal> put(const std::vector<nft::Table>& tables);
  void leave_count(const std::string& bridge);
  Result<std::vector<std::uint64_t>> packets_counted(const std::string& bridge);
  std::vector<nft::TableName> counting_tables() const;
  std::vector<nft::Table> all_tables() const;

  FirewallOptions options_;
  nft::PacketFilter filter_;
  bool kernel_has_persist_ = true;  // until it says otherwise
  HostNetwork host_;
  bool follows_ = false;  // the kernel has taken host_
  Ruleset wanted_;
  unsigned replacements_ = 0;
  std::map<std::string, unsigned> counting_;  // bridges, and how many count there
};

}  // namespace agbox
