// SPDX-License-Identifier: Apache-2.0
// The sandbox firewall of one instance: holds the wanted rules, loads them into the kernel and
// compares. Every table has two copies (see docs/decisions/0030-two-tables.md). Every call blocks
// for about a millisecond; single-threaded.
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

  // Replaces existing tables by both copies and reads them back. They stay in the kernel after this
  // object's end; the owned copy if the kernel supports that.
  Result<> load(const HostNetwork& host);

  // Updates both copies to the current host network. No effect if nothing changed. True if the
  // tables had to be replaced because another process has changed them.
  Result<bool> follow(const HostNetwork& host);

  // Compares the kernel's tables with the wanted ones; the error names the difference.
  Result<> verify();

  // The state of each of our tables, and other chains that cut sandboxes off.
  Result<FirewallFacts> inspect();

  // Restores what differs; returns the difference, nullopt if there was none.
  Result<std::optional<std::string>> repair();

  // Between begin_count() and end_count(), refused connections from one bridge to this host are
  // counted. May be nested for a bridge.
  struct CountMark {
    std::vector<std::uint64_t> packets;  // by table
    unsigned replacements = 0;
  };
  Result<CountMark> begin_count(const std::string& bridge);
  // The number of packets refused since; nullopt if unknown because tables were replaced.
  Result<std::optional<std::uint64_t>> end_count(const std::string& bridge, const CountMark& mark);

  // Removes both copies: for a daemon that ends without sandboxes.
  Result<> remove();

  // How often tables were replaced.
  unsigned replacements() const { return replacements_; }
  const HostNetwork& host() const { return host_; }
  // Of all tables, to recognize changes to them.
  std::vector<nft::TableName> table_names() const;
  std::uint32_t port_id() const { return filter_.port_id(); }

 private:
  Firewall(FirewallOptions options, nft::PacketFilter filter);
  using Copy = std::vector<nft::Table> Ruleset::*;

  void set_wanted(const HostNetwork& host);
  // Whether an older kernel refuses this because of a part that the rules can do without; then they
  // are without it from now on.
  bool can_do_without(const nft::Refusal& refusal);
  // One after the other: each filters while the other is replaced.
  Result<> replace_both();
  Result<> replace(Copy copy);
  // Replaces these tables, in one transaction.
  std::expected<void, nft::Refusal> put(const std::vector<nft::Table>& tables);
  void release_count(const std::string& bridge);
  Result<std::vector<std::uint64_t>> packets_counted(const std::string& bridge);
  std::vector<nft::TableName> counting_tables() const;
  std::vector<nft::Table> all_tables() const;

  FirewallOptions options_;
  nft::PacketFilter filter_;
  bool kernel_has_persist_ = true;  // until the kernel refuses it
  bool kernel_has_timeouts_ = true;
  HostNetwork host_;
  bool follows_ = false;  // the kernel has accepted host_
  Ruleset wanted_;
  unsigned replacements_ = 0;
  std::map<std::string, unsigned> counting_;  // per bridge, how many count there
};

}  // namespace agbox
