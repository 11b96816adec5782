// SPDX-License-Identifier: Apache-2.0
// The kernel's packet filter in our network namespace: applies transactions and reads tables back.
// Touches only the given tables. Tables created with the owner flag are owned by this object;
// without it they have no owner.
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

// Why a transaction was refused: the message, and what a program needs to react.
struct Refusal {
  Error error;
  int number = 0;    // errno
  std::string what;  // the refused part, see Batch::what()
};

class PacketFilter {
 public:
  static Result<PacketFilter> open();

  // Events about changes by this object carry this ID.
  std::uint32_t port_id() const { return socket_.port_id(); }

  // Atomic.
  std::expected<void, Refusal> apply(Batch& batch);

  // Those of the named tables that exist, in one consistent snapshot.
  Result<std::vector<Table>> read(std::span<const TableName> names);
  // How many packets a counting element has matched; nullopt if it does not exist.
  Result<std::optional<std::uint64_t>> count(const TableName& table, const std::string& set,
                                             const Bytes& key);
  // All IPv4 chains at the forward hook with their rules, regardless of owner; without sets.
  Result<std::vector<Table>> read_forward_chains();
  // Which of them exist.
  Result<std::vector<TableName>> existing(std::span<const TableName> names);

 private:
  explicit PacketFilter(NetlinkSocket socket) : socket_(std::move(socket)) {}
  KernelResult<std::uint32_t> generation();
  // Repeats `read` until it was not interrupted by a change; `what` is for the error.
  Result<std::vector<Table>> read_snapshot(
      const std::string& what, const std::function<KernelResult<std::vector<Table>>()>& read);
  KernelResult<std::vector<Table>> read_forward_chains_once();
  KernelResult<std::vector<Table>> read_once(std::span<const TableName> names);
  KernelResult<std::vector<Table>> read_headers(std::span<const TableName> names);
  KernelResult<> read_chains(Table& table);
  KernelResult<> read_rules(Table& table);
  KernelResult<> read_sets(Table& table);
  KernelResult<> read_timeouts(Table& table);
  KernelResult<> read_elements(const TableName& table, Set& set);

  NetlinkSocket socket_;
};

// One sentence: what was attempted, the kernel's reason, the remedy. `what` is empty for the
// transaction itself.
std::string explain_refusal(const std::string& what, const KernelError& error);

}  // namespace agbox::nft
