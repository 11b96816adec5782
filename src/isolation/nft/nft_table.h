// SPDX-License-Identifier: Apache-2.0
// A table of the kernel's packet filter as a value: both the wanted state and the kernel's, so that
// they can be compared. Numbers are the kernel's (linux/netfilter/nf_tables.h). No I/O.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace agbox::nft {

using Bytes = std::vector<std::uint8_t>;

// The steps of a rule. All our rules use one register, which is implied: loads write it; tests read
// it and leave the rule if they fail.
struct LoadMeta {
  std::uint32_t key = 0;  // NFT_META_…
  bool operator==(const LoadMeta&) const = default;
};
struct LoadPayload {
  std::uint32_t base = 0;  // NFT_PAYLOAD_…
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  bool operator==(const LoadPayload&) const = default;
};
struct LoadConnection {
  std::uint32_t key = 0;  // NFT_CT_…
  std::optional<std::uint8_t> direction;
  bool operator==(const LoadConnection&) const = default;
};
struct LoadRoute {
  std::uint32_t result = 0;  // NFT_FIB_RESULT_…
  std::uint32_t flags = 0;   // NFTA_FIB_F_…
  bool operator==(const LoadRoute&) const = default;
};
struct Mask {
  Bytes bits;
  bool operator==(const Mask&) const = default;
};
struct Compare {
  bool equal = true;
  Bytes value;
  bool operator==(const Compare&) const = default;
};
struct Lookup {
  std::string set;
  bool contained = true;
  bool operator==(const Lookup&) const = default;
};
// Continues if the register's key, as an element of the set, has more connections than this.
struct OverBudget {
  std::string set;
  std::uint32_t connections = 0;
  bool operator==(const OverBudget&) const = default;
};
// Continues if the register's key, as an element of the set, came more often than this.
struct OverRate {
  std::string set;
  std::uint64_t per_second = 0;
  std::uint32_t burst = 0;
  bool operator==(const OverRate&) const = default;
};
// A new connection ends by the timeouts of this name, not by the host's.
struct UseTimeouts {
  std::string timeouts;
  bool operator==(const UseTimeouts&) const = default;
};
struct Count {  // its values change on their own and are not compared
  bool operator==(const Count&) const = default;
};
struct Reject {
  std::uint32_t type = 0;  // NFT_REJECT_…
  std::uint8_t code = 0;
  bool operator==(const Reject&) const = default;
};
struct Verdict {
  std::int32_t code = 0;  // NF_… or NFT_…
  std::string chain;      // of a jump or goto
  bool operator==(const Verdict&) const = default;
};
// A step of the kernel's that is none of the above.
struct Foreign {
  std::string what;
  bool operator==(const Foreign&) const = default;
};

using Step = std::variant<LoadMeta, LoadPayload, LoadConnection, LoadRoute, Mask, Compare, Lookup,
                          OverBudget, OverRate, UseTimeouts, Count, Reject, Verdict, Foreign>;
using Rule = std::vector<Step>;

struct Hook {
  std::string type = "filter";
  std::uint32_t number = 0;  // NF_INET_… or NF_ARP_…
  std::int32_t priority = 0;
  std::uint32_t policy = 1;  // NF_ACCEPT
  bool operator==(const Hook&) const = default;
};

struct Chain {
  std::string name;
  std::optional<Hook> hook;  // without one it is only a jump target
  std::vector<Rule> rules;
  bool operator==(const Chain&) const = default;
};

struct Element {
  Bytes key;
  bool ends_interval = false;  // the first key after an interval
  auto operator<=>(const Element&) const = default;
};

struct Set {
  std::string name;
  std::uint32_t key_type = 0;  // nft's number of the type, only used for listing
  std::uint32_t key_length = 0;
  std::uint32_t flags = 0;  // NFT_SET_…
  std::uint32_t size = 0;   // 0: no limit
  bool holds_text = false;  // only used for listing: nft swaps the bytes of numbers
  bool varies = false;      // elements change at run time and are not compared
  std::vector<Element> elements;
  bool operator==(const Set&) const = default;
};

// How long the kernel tracks a connection that is silent, per state of its protocol.
struct Timeouts {
  std::string name;
  std::uint32_t kind = 7;  // NFT_OBJECT_…; any other kind is foreign
  std::uint8_t protocol = 0;
  std::vector<std::uint32_t> seconds{};  // by NFTNL_CTTIMEOUT_…
  bool operator==(const Timeouts&) const = default;
};

struct TableName {
  std::uint8_t family = 0;  // NFPROTO_…
  std::string name;
  std::string text() const;  // in nft's syntax: inet agents_sandbox_1000_0a0b0c0d
  auto operator<=>(const TableName&) const = default;
};

// The owner is the socket that created the table: no other process can change it. `persist` keeps
// the table after the socket closes; kernels and headers before 6.9 do not have it.
inline constexpr std::uint32_t kTableOwner = 2;
inline constexpr std::uint32_t kTablePersist = 4;

struct Table {
  TableName name;
  std::uint32_t flags = 0;
  std::vector<Set> sets{};
  std::vector<Timeouts> timeouts{};
  std::vector<Chain> chains{};
  bool operator==(const Table&) const = default;
};

}  // namespace agbox::nft
