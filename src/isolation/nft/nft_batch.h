// SPDX-License-Identifier: Apache-2.0
// One transaction of the packet filter: everything in it happens at once, or nothing does. Puts
// tables, as nft_table.h describes them, into the kernel's messages.
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

  // The table with all that is in it; it must not exist.
  void add_table(const Table& table);
  // The table with all that is in it; it must exist.
  void delete_table(const TableName& table);
  // The set's elements, instead of those that it has.
  void replace_elements(const TableName& table, const Set& set);
  // One that counts the packets that match it; one that is there goes on counting.
  void add_counting_element(const TableName& table, const std::string& set, const Bytes& key);
  void delete_element(const TableName& table, const std::string& set, const Bytes& key);

  // The whole transaction, ready to be sent. Nothing can be added after it.
  std::span<const char> finish();

  // What the message with this sequence number asks for: "add table inet x", for error sentences.
  // Empty for the transaction as such.
  std::string what(std::uint32_t sequence) const;

 private:
  using Write = std::function<void(nlmsghdr*)>;
  void put(std::uint16_t type, const TableName& table, std::uint16_t flags, std::string what,
           const Write& write);
  void add_set(const TableName& table, const Set& set);
  void add_elements(const TableName& table, const Set& set);
  void add_chain(const TableName& table, const Chain& chain);
  void add_rule(const TableName& table, const Chain& chain, std::size_t number);
  char* room();

  std::vector<char> buffer_;
  std::size_t used_ = 0;
  std::size_t last_ = 0;  // where the last message begins
  std::uint32_t sets_ = 0;
  std::vector<std::string> what_;  // by sequence number
};

}  // namespace agbox::nft
