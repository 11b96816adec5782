// SPDX-License-Identifier: Apache-2.0
// The kernel's packet filter of the network namespace that we are in: applies transactions and
// reads tables back. Touches only tables that it is asked for. What it makes with an owner is owned
// by this object, and by nobody when it is gone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "isolation/netlink/netlink_socket.h"
#include "isolation/nft/nft_batch.h"
#include "isolation/nft/nft_table.h"

namespace agbox::nft {

// Why a transaction was refused: the sentence, and what a program needs to try something else.
struct Refusal {
  Error error;
  int number = 0;    // errno
  std::string what;  // the refused part, as Batch::what() says it
};

class PacketFilter {
 public:
  static Result<PacketFilter> open();

  // Changes that this object made carry this number where the kernel tells of them.
  std::uint32_t port_id() const { return socket_.port_id(); }

  // All of it or nothing.
  std::expected<void, Refusal> apply(Batch& batch);

  // Those of the named tables that exist, as they were at one moment.
  Result<std::vector<Table>> read(std::span<const TableName> names);
  // How many packets a counting element of the set has matched; nothing where it is not there.
  Result<std::optional<std::uint64_t>> count(const TableName& table, const std::string& set,
                                             const Bytes& key);
  // The chains at the forward hook for IPv4 with their rules, whosever they are; without the sets
  // of their tables.
  Result<std::vector<Table>> read_forward_chains();
  // Which of them exist.
  Result<std::vector<TableName>> existing(std::span<const TableName> names);

 private:
  explicit PacketFilter(NetlinkSocket socket) : socket_(std::move(socket)) {}
  KernelResult<std::uint32_t> generation();
  // What `read` gives, once nothing has changed while it read; `what` is for the error.
  Result<std::vector<Table>> read_at_one_moment(
      const std::string& what, const std::function<KernelResult<std::vector<Table>>()>& read);
  KernelResult<std::vector<Table>> read_forward_chains_once();
  KernelResult<std::vector<Table>> read_once(std::span<const TableName> names);
  KernelResult<std::vector<Table>> read_headers(std::span<const TableName> names);
  KernelResult<> read_chains(Table& table);
  KernelResult<> read_rules(Table& table);
  KernelResult<> read_sets(Table& table);
  KernelResult<> read_elements(const TableName& table, Set& set);

  NetlinkSocket socket_;
};

// One sentence: what we tried, what the kernel said, what helps. `what` is empty for the
// transaction as such.
std::string explain_refusal(const std::string& what, const KernelError& error);

}  // namespace agbox::nft
