// SPDX-License-Identifier: Apache-2.0
// One atomic transaction of the packet filter: encodes tables, as described by nft_table.h, into
// netlink messages.
#pragma once

#include <linux/netlink.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "isolation/nft/nft_table.h"

namespace agbox::nft {

class Batch {
 public:
  Batch();

  // With its content; must not exist.
  void add_table(const Table& table);
  // With its content; must exist.
  void delete_table(const TableName& table);
  // Replaces the set's elements.
  void replace_elements(const TableName& table, const Set& set);
  // An element that counts matching packets; an existing one keeps counting.
  void add_counting_element(const TableName& table, const std::string& set, const Bytes& key);
  void delete_element(const TableName& table, const std::string& set, const Bytes& key);

  // The complete transaction, ready to be sent. Nothing can be added afterwards.
  std::span<const char> finish();

  // Describes the message with this sequence number for errors, e.g. "add table inet x"; empty for
  // the transaction itself.
  std::string what(std::uint32_t sequence) const;

 private:
  using Write = std::function<void(nlmsghdr*)>;
  void put(std::uint16_t type, const TableName& table, std::uint16_t flags, std::string what,
           const Write& write);
  void add_set(const TableName& table, const Set& set);
  void add_elements(const TableName& table, const Set& set);
  void add_timeouts(const TableName& table, const Timeouts& timeouts);
  void add_chain(const TableName& table, const Chain& chain);
  void add_rule(const TableName& table, const Chain& chain, std::size_t number);
  char* reserve();

  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::size_t last_ = 0;  // offset of the last message
  std::uint32_t sets_ = 0;
  std::vector<std::string> what_;  // by sequence number
};

}  // namespace agbox::nft
