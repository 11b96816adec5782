// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/packet_filter.h"

#include <libmnl/libmnl.h>
#include <libnftnl/common.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

#include "isolation/netlink/netlink_attributes.h"
#include "isolation/nft/netfilter.h"
#include "isolation/nft/nft_objects.h"
#include "isolation/nft/nft_steps.h"
#include "model/reasons.h"

namespace agbox::nft {
namespace {

// A read interrupted by a change is repeated. This many changes in a row are no accident.
constexpr int kReadAttempts = 50;

struct Question {
  alignas(nlmsghdr) std::array<char, 4096> bytes;
  nlmsghdr* header;

  Question(std::uint16_t type, std::uint8_t family, std::uint16_t flags)
      : header(nftnl_nlmsg_build_hdr(bytes.data(), type, family, flags, 0)) {}
  std::span<const char> message() const { return {bytes.data(), header->nlmsg_len}; }
};

std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string{} : std::string(text);
}

struct ChainOfTable {
  std::string table;
  Chain chain;
};

std::optional<ChainOfTable> decode_chain(const nlmsghdr* answer) {
  auto object = make_chain_object();
  if (nftnl_chain_nlmsg_parse(answer, object.get()) < 0) return std::nullopt;
  const nftnl_chain* seen = object.get();
  Chain chain{
      .name = text_or_empty(nftnl_chain_get_str(seen, NFTNL_CHAIN_NAME)), .hook = {}, .rules = {}};
  if (nftnl_chain_is_set(seen, NFTNL_CHAIN_HOOKNUM)) {
    chain.hook = Hook{.type = text_or_empty(nftnl_chain_get_str(seen, NFTNL_CHAIN_TYPE)),
                      .number = nftnl_chain_get_u32(seen, NFTNL_CHAIN_HOOKNUM),
                      .priority = nftnl_chain_get_s32(seen, NFTNL_CHAIN_PRIO),
                      .policy = nftnl_chain_get_u32(seen, NFTNL_CHAIN_POLICY)};
  }
  return ChainOfTable{.table = text_or_empty(nftnl_chain_get_str(seen, NFTNL_CHAIN_TABLE)),
                      .chain = std::move(chain)};
}

Rule decode_rule(nftnl_rule* seen) {
  Rule rule;
  const auto take = [](nftnl_expr* expression, void* into) {
    static_cast<Rule*>(into)->push_back(decode_step(expression));
    return 0;
  };
  nftnl_expr_foreach(seen, take, &rule);
  return rule;
}

Set decode_set(const nftnl_set* seen) {
  return {.name = text_or_empty(nftnl_set_get_str(seen, NFTNL_SET_NAME)),
          .key_type = nftnl_set_get_u32(seen, NFTNL_SET_KEY_TYPE),
          .key_length = nftnl_set_get_u32(seen, NFTNL_SET_KEY_LEN),
          .flags = nftnl_set_get_u32(seen, NFTNL_SET_FLAGS),
          .size = nftnl_set_is_set(seen, NFTNL_SET_DESC_SIZE)
                      ? nftnl_set_get_u32(seen, NFTNL_SET_DESC_SIZE)
                      : 0,
          .holds_text = false,  // unknown to the kernel
          .varies = false,
          .elements = {}};
}

Element decode_element(nftnl_set_elem* seen) {
  std::uint32_t size = 0;
  const auto* key =
      static_cast<const std::uint8_t*>(nftnl_set_elem_get(seen, NFTNL_SET_ELEM_KEY, &size));
  const bool ends =
      nftnl_set_elem_is_set(seen, NFTNL_SET_ELEM_FLAGS) &&
      (nftnl_set_elem_get_u32(seen, NFTNL_SET_ELEM_FLAGS) & NFT_SET_ELEM_INTERVAL_END) != 0;
  return {.key = key == nullptr ? Bytes{} : Bytes(key, key + size), .ends_interval = ends};
}

Timeouts decode_timeouts(nftnl_obj* seen) {
  Timeouts timeouts{.name = text_or_empty(nftnl_obj_get_str(seen, NFTNL_OBJ_NAME)),
                    .kind = nftnl_obj_get_u32(seen, NFTNL_OBJ_TYPE)};
  if (timeouts.kind != NFT_OBJECT_CT_TIMEOUT) return timeouts;
  timeouts.protocol = nftnl_obj_get_u8(seen, NFTNL_OBJ_CT_TIMEOUT_L4PROTO);
  std::uint32_t size = 0;
  const auto* seconds = static_cast<const std::uint32_t*>(
      nftnl_obj_get_data(seen, NFTNL_OBJ_CT_TIMEOUT_ARRAY, &size));
  if (seconds != nullptr) timeouts.seconds.assign(seconds, seconds + size / sizeof *seconds);
  return timeouts;
}

std::optional<std::uint64_t> count_of(nftnl_set_elem* seen) {
  if (!nftnl_set_elem_is_set(seen, NFTNL_SET_ELEM_EXPR)) return std::nullopt;
  std::uint32_t size = 0;
  const auto* counter =
      static_cast<const nftnl_expr*>(nftnl_set_elem_get(seen, NFTNL_SET_ELEM_EXPR, &size));
  if (counter == nullptr ||
      text_or_empty(nftnl_expr_get_str(counter, NFTNL_EXPR_NAME)) != "counter") {
    return std::nullopt;
  }
  return nftnl_expr_get_u64(counter, NFTNL_EXPR_CTR_PACKETS);
}

std::unexpected<Error> cannot(const std::string& what, const KernelError& error) {
  return fail(reason::kIsolationUnavailable, explain_refusal(what, error));
}

}  // namespace

std::string explain_refusal(const std::string& what, const KernelError& error) {
  std::string sentence =
      "sandbox firewall: " + (what.empty() ? std::string("change nftables") : what) + ": " +
      error.text();
  // The transaction itself is refused if we lack the privilege; a part of it, if another process
  // owns the table.
  if (error.number == EPERM && (what.starts_with("add ") || what.starts_with("delete "))) {
    return sentence +
           "; another process owns the table: end it, or restart it without the owner flag";
  }
  if (error.number == EPERM) {
    return sentence +
           "; the daemon needs CAP_NET_ADMIN: sudo setcap cap_net_admin+ep $(which agboxd)";
  }
  if (error.number == EPROTONOSUPPORT || error.number == EAFNOSUPPORT ||
      error.number == EOPNOTSUPP || error.number == ENOENT) {
    return sentence +
           "; this kernel seems to lack a part of nftables, try: sudo modprobe -a nf_tables nft_ct "
           "nft_fib_inet nft_reject_inet nft_connlimit nft_limit";
  }
  if (error.number == ENOMEM || error.number == ENOBUFS) {
    return sentence + "; the kernel is out of memory: free some";
  }
  if (error.number == EBUSY || error.number == EAGAIN || error.number == EINTR) {
    return sentence + "; another process changes the firewall, find it with: nft monitor";
  }
  return sentence;
}

Result<PacketFilter> PacketFilter::open() {
  auto socket = NetlinkSocket::open(NETLINK_NETFILTER);
  if (!socket) return cannot("open a netlink socket", socket.error());
  return PacketFilter(std::move(*socket));
}

std::expected<void, Refusal> PacketFilter::apply(Batch& batch) {
  const auto done = socket_.ask(batch.finish(), [](const nlmsghdr*) {});
  if (done) return {};
  const KernelError& refused = done.error();
  std::string what = batch.what(refused.sequence);
  Error error(reason::kIsolationUnavailable, explain_refusal(what, refused));
  return std::unexpected(
      Refusal{.error = std::move(error), .number = refused.number, .what = std::move(what)});
}

Result<std::vector<Table>> PacketFilter::read(std::span<const TableName> names) {
  return read_snapshot(names.front().text(), [&] { return read_once(names); });
}

Result<std::vector<Table>> PacketFilter::read_forward_chains() {
  return read_snapshot("the forward chains", [&] { return read_forward_chains_once(); });
}

Result<std::vector<Table>> PacketFilter::read_snapshot(
    const std::string& what, const std::function<KernelResult<std::vector<Table>>()>& read) {
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    const auto before = generation();
    if (!before) return cannot("read the generation of nftables", before.error());
    auto tables = read();
    if (!tables && tables.error().number == EINTR) continue;
    if (!tables && tables.error().number == ENOENT) continue;  // removed while reading
    if (!tables) return cannot("read " + what, tables.error());
    const auto after = generation();
    if (!after) return cannot("read the generation of nftables", after.error());
    if (*before == *after) return std::move(*tables);
  }
  return fail(
      reason::kIsolationUnavailable,
      "sandbox firewall: read " + what + ": the rules of this host changed during each of " +
          std::to_string(kReadAttempts) + " attempts; find what changes them with: nft monitor");
}

Result<std::optional<std::uint64_t>> PacketFilter::count(const TableName& table,
                                                         const std::string& set, const Bytes& key) {
  Question question(NFT_MSG_GETSETELEM, table.family, NLM_F_ACK);
  const auto wanted = set_object(table, set);
  add_key(wanted.get(), key);
  nftnl_set_elems_nlmsg_build_payload(question.header, wanted.get());

  std::optional<std::uint64_t> packets;
  const auto asked = socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    auto object = make_set_object();
    if (nftnl_set_elems_nlmsg_parse(answer, object.get()) < 0) return;
    const auto take = [](nftnl_set_elem* seen, void* into) {
      *static_cast<std::optional<std::uint64_t>*>(into) = count_of(seen);
      return 0;
    };
    nftnl_set_elem_foreach(object.get(), take, &packets);
  });
  if (!asked && asked.error().number == ENOENT) return std::optional<std::uint64_t>{};
  if (!asked) return cannot("read set " + set + " of table " + table.text(), asked.error());
  return packets;
}

Result<std::vector<TableName>> PacketFilter::existing(std::span<const TableName> names) {
  AGBOX_TRY(headers, read_snapshot("the tables", [&] { return read_headers(names); }));
  std::vector<TableName> found;
  for (const Table& table : headers) found.push_back(table.name);
  return found;
}

KernelResult<std::uint32_t> PacketFilter::generation() {
  std::uint32_t generation = 0;
  const Question question(NFT_MSG_GETGEN, NFPROTO_UNSPEC, NLM_F_ACK);
  const auto asked = socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    for_each_attribute(answer, sizeof(nfgenmsg), [&](const nlattr* attribute) {
      if (mnl_attr_get_type(attribute) != NFTA_GEN_ID) return;
      if (mnl_attr_validate(attribute, MNL_TYPE_U32) < 0) return;
      generation = mnl_attr_get_u32(attribute);
    });
  });
  if (!asked) return std::unexpected(asked.error());
  return generation;
}

KernelResult<std::vector<Table>> PacketFilter::read_once(std::span<const TableName> names) {
  auto tables = read_headers(names);
  if (!tables) return tables;
  for (Table& table : *tables) {
    for (const auto part : {&PacketFilter::read_chains, &PacketFilter::read_rules,
                            &PacketFilter::read_sets, &PacketFilter::read_timeouts}) {
      if (const auto read = (this->*part)(table); !read) return std::unexpected(read.error());
    }
  }
  return tables;
}

KernelResult<std::vector<Table>> PacketFilter::read_headers(std::span<const TableName> names) {
  std::vector<Table> tables;
  const Question question(NFT_MSG_GETTABLE, NFPROTO_UNSPEC, NLM_F_DUMP);
  const auto asked = socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    auto object = make_table_object();
    if (nftnl_table_nlmsg_parse(answer, object.get()) < 0) return;
    const TableName name{
        .family = static_cast<std::uint8_t>(nftnl_table_get_u32(object.get(), NFTNL_TABLE_FAMILY)),
        .name = text_or_empty(nftnl_table_get_str(object.get(), NFTNL_TABLE_NAME))};
    if (std::ranges::find(names, name) == names.end()) return;
    tables.push_back({.name = name,
                      .flags = nftnl_table_get_u32(object.get(), NFTNL_TABLE_FLAGS),
                      .sets = {},
                      .timeouts = {},
                      .chains = {}});
  });
  if (!asked) return std::unexpected(asked.error());
  return tables;
}

KernelResult<> PacketFilter::read_chains(Table& table) {
  const Question question(NFT_MSG_GETCHAIN, table.name.family, NLM_F_DUMP);
  return socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    auto seen = decode_chain(answer);
    if (seen && seen->table == table.name.name) table.chains.push_back(std::move(seen->chain));
  });
}

KernelResult<std::vector<Table>> PacketFilter::read_forward_chains_once() {
  std::vector<Table> tables;
  for (const std::uint8_t family : {NFPROTO_IPV4, NFPROTO_INET}) {
    const Question question(NFT_MSG_GETCHAIN, family, NLM_F_DUMP);
    const auto listed = socket_.ask(question.message(), [&](const nlmsghdr* answer) {
      auto seen = decode_chain(answer);
      if (!seen || !seen->chain.hook || seen->chain.hook->number != NF_INET_FORWARD) return;
      const TableName name{.family = family, .name = seen->table};
      auto table = std::ranges::find(tables, name, &Table::name);
      if (table == tables.end()) {
        table = tables.insert(tables.end(), Table{.name = name});
      }
      table->chains.push_back(std::move(seen->chain));
    });
    if (!listed) return std::unexpected(listed.error());
  }
  for (Table& table : tables) {
    if (const auto read = read_rules(table); !read) return std::unexpected(read.error());
  }
  return tables;
}

KernelResult<> PacketFilter::read_rules(Table& table) {
  Question question(NFT_MSG_GETRULE, table.name.family, NLM_F_DUMP);
  auto wanted = make_rule_object();
  nftnl_rule_set_str(wanted.get(), NFTNL_RULE_TABLE, table.name.name.c_str());
  nftnl_rule_nlmsg_build_payload(question.header, wanted.get());
  return socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    auto object = make_rule_object();
    if (nftnl_rule_nlmsg_parse(answer, object.get()) < 0) return;
    const std::string name = text_or_empty(nftnl_rule_get_str(object.get(), NFTNL_RULE_CHAIN));
    const auto chain = std::ranges::find(table.chains, name, &Chain::name);
    if (chain != table.chains.end()) chain->rules.push_back(decode_rule(object.get()));
  });
}

KernelResult<> PacketFilter::read_sets(Table& table) {
  Question question(NFT_MSG_GETSET, table.name.family, NLM_F_DUMP);
  auto wanted = make_set_object();
  nftnl_set_set_str(wanted.get(), NFTNL_SET_TABLE, table.name.name.c_str());
  nftnl_set_nlmsg_build_payload(question.header, wanted.get());
  const auto listed = socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    auto object = make_set_object();
    if (nftnl_set_nlmsg_parse(answer, object.get()) < 0) return;
    table.sets.push_back(decode_set(object.get()));
  });
  if (!listed) return listed;
  for (Set& set : table.sets) {
    // Elements added by rules at run time are not part of the description.
    if ((set.flags & NFT_SET_EVAL) != 0) continue;
    if (const auto read = read_elements(table.name, set); !read) return read;
  }
  return {};
}

KernelResult<> PacketFilter::read_timeouts(Table& table) {
  Question question(NFT_MSG_GETOBJ, table.name.family, NLM_F_DUMP);
  const auto wanted = make_stateful_object();
  nftnl_obj_set_str(wanted.get(), NFTNL_OBJ_TABLE, table.name.name.c_str());
  nftnl_obj_nlmsg_build_payload(question.header, wanted.get());
  return socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    const auto object = make_stateful_object();
    if (nftnl_obj_nlmsg_parse(answer, object.get()) < 0) return;
    table.timeouts.push_back(decode_timeouts(object.get()));
  });
}

KernelResult<> PacketFilter::read_elements(const TableName& table, Set& set) {
  Question question(NFT_MSG_GETSETELEM, table.family, NLM_F_DUMP);
  const auto wanted = set_object(table, set.name);
  nftnl_set_elems_nlmsg_build_payload(question.header, wanted.get());
  return socket_.ask(question.message(), [&](const nlmsghdr* answer) {
    auto object = make_set_object();
    if (nftnl_set_elems_nlmsg_parse(answer, object.get()) < 0) return;
    const auto take = [](nftnl_set_elem* element, void* into) {
      static_cast<Set*>(into)->elements.push_back(decode_element(element));
      return 0;
    };
    nftnl_set_elem_foreach(object.get(), take, &set);
  });
}

}  // namespace agbox::nft
