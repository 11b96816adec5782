// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/nft_batch.h"

#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <libnftnl/udata.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "isolation/nft/netfilter.h"
#include "isolation/nft/nft_objects.h"
#include "isolation/nft/nft_steps.h"

namespace agbox::nft {
namespace {

// libnftnl does not check the buffer size. No message of ours is longer: the longest hold elements,
// whose number per message is limited.
constexpr std::size_t kLongestMessage = 65536;
constexpr std::size_t kElementsInMessage = 500;

// The user data that nft stores with such a set, in its encoding: type, length, and the key's byte
// order, which is the host's.
constexpr std::array<std::uint8_t, 6> kTextKey = {
    NFTNL_UDATA_SET_KEYBYTEORDER,
    4,
    std::endian::native == std::endian::little ? 1 : 0,
    0,
    0,
    std::endian::native == std::endian::little ? 0 : 1};

void add_element(nftnl_set* set, const Element& element) {
  nftnl_set_elem* made = add_key(set, element.key);
  if (element.ends_interval) {
    nftnl_set_elem_set_u32(made, NFTNL_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
  }
}

}  // namespace

Batch::Batch() {
  last_ = used_;
  used_ += nftnl_batch_begin(reserve(), 0)->nlmsg_len;
  what_.emplace_back();
}

char* Batch::reserve() {
  if (buffer_.size() < used_ + kLongestMessage) buffer_.resize(2 * (used_ + kLongestMessage));
  return buffer_.data() + used_;
}

void Batch::put(std::uint16_t type, const TableName& table, std::uint16_t flags, std::string what,
                const Write& write) {
  const auto sequence = static_cast<std::uint32_t>(what_.size());
  nlmsghdr* message = nftnl_nlmsg_build_hdr(reserve(), type, table.family, flags, sequence);
  write(message);
  last_ = used_;
  used_ += message->nlmsg_len;
  what_.push_back(std::move(what));
}

void Batch::add_table(const Table& table) {
  put(NFT_MSG_NEWTABLE, table.name, NLM_F_CREATE | NLM_F_EXCL, "add table " + table.name.text(),
      [&](nlmsghdr* message) {
        auto object = make_table_object();
        nftnl_table_set_str(object.get(), NFTNL_TABLE_NAME, table.name.name.c_str());
        nftnl_table_set_u32(object.get(), NFTNL_TABLE_FLAGS, table.flags);
        nftnl_table_nlmsg_build_payload(message, object.get());
      });
  for (const Set& set : table.sets) {
    add_set(table.name, set);
    add_elements(table.name, set);
  }
  for (const Timeouts& timeouts : table.timeouts) add_timeouts(table.name, timeouts);
  for (const Chain& chain : table.chains) add_chain(table.name, chain);
  // Rules refer to all of these, so they come last.
  for (const Chain& chain : table.chains) {
    for (std::size_t i = 0; i < chain.rules.size(); ++i) add_rule(table.name, chain, i);
  }
}

void Batch::delete_table(const TableName& table) {
  put(NFT_MSG_DELTABLE, table, 0, "delete table " + table.text(), [&](nlmsghdr* message) {
    auto object = make_table_object();
    nftnl_table_set_str(object.get(), NFTNL_TABLE_NAME, table.name.c_str());
    nftnl_table_nlmsg_build_payload(message, object.get());
  });
}

void Batch::replace_elements(const TableName& table, const Set& set) {
  // Without elements it deletes all of them.
  put(NFT_MSG_DELSETELEM, table, 0, "flush set " + set.name + " of table " + table.text(),
      [&](nlmsghdr* message) {
        const auto object = set_object(table, set.name);
        nftnl_set_elems_nlmsg_build_payload(message, object.get());
      });
  add_elements(table, set);
}

void Batch::add_set(const TableName& table, const Set& set) {
  // No other user data: nft of Debian 12 crashes on some of what newer versions store.
  put(NFT_MSG_NEWSET, table, NLM_F_CREATE | NLM_F_EXCL,
      "add set " + set.name + " to table " + table.text(), [&](nlmsghdr* message) {
        const auto object = set_object(table, set.name);
        nftnl_set_set_u32(object.get(), NFTNL_SET_FAMILY, table.family);
        nftnl_set_set_u32(object.get(), NFTNL_SET_ID, ++sets_);
        nftnl_set_set_u32(object.get(), NFTNL_SET_FLAGS, set.flags);
        nftnl_set_set_u32(object.get(), NFTNL_SET_KEY_TYPE, set.key_type);
        nftnl_set_set_u32(object.get(), NFTNL_SET_KEY_LEN, set.key_length);
        if (set.size != 0) nftnl_set_set_u32(object.get(), NFTNL_SET_DESC_SIZE, set.size);
        if (set.holds_text) {
          nftnl_set_set_data(object.get(), NFTNL_SET_USERDATA, kTextKey.data(), kTextKey.size());
        }
        nftnl_set_nlmsg_build_payload(message, object.get());
      });
}

void Batch::add_elements(const TableName& table, const Set& set) {
  for (std::size_t begin = 0; begin < set.elements.size(); begin += kElementsInMessage) {
    const std::size_t end = std::min(begin + kElementsInMessage, set.elements.size());
    put(NFT_MSG_NEWSETELEM, table, NLM_F_CREATE,
        "populate set " + set.name + " of table " + table.text(), [&](nlmsghdr* message) {
          const auto object = set_object(table, set.name);
          for (std::size_t i = begin; i < end; ++i) add_element(object.get(), set.elements[i]);
          nftnl_set_elems_nlmsg_build_payload(message, object.get());
        });
  }
}

void Batch::add_counting_element(const TableName& table, const std::string& set, const Bytes& key) {
  put(NFT_MSG_NEWSETELEM, table, NLM_F_CREATE, "add to set " + set + " of table " + table.text(),
      [&](nlmsghdr* message) {
        const auto object = set_object(table, set);
        nftnl_set_elem* made = add_key(object.get(), key);
        // The element frees it.
        nftnl_set_elem_set(made, NFTNL_SET_ELEM_EXPR, make_expression_object("counter").release(),
                           0);
        nftnl_set_elems_nlmsg_build_payload(message, object.get());
      });
}

void Batch::delete_element(const TableName& table, const std::string& set, const Bytes& key) {
  put(NFT_MSG_DELSETELEM, table, 0, "remove from set " + set + " of table " + table.text(),
      [&](nlmsghdr* message) {
        const auto object = set_object(table, set);
        add_key(object.get(), key);
        nftnl_set_elems_nlmsg_build_payload(message, object.get());
      });
}

void Batch::add_timeouts(const TableName& table, const Timeouts& timeouts) {
  put(NFT_MSG_NEWOBJ, table, NLM_F_CREATE | NLM_F_EXCL,
      "add timeouts " + timeouts.name + " to table " + table.text(), [&](nlmsghdr* message) {
        const auto object = make_stateful_object();
        nftnl_obj_set_str(object.get(), NFTNL_OBJ_TABLE, table.name.c_str());
        nftnl_obj_set_str(object.get(), NFTNL_OBJ_NAME, timeouts.name.c_str());
        nftnl_obj_set_u32(object.get(), NFTNL_OBJ_TYPE, timeouts.kind);
        nftnl_obj_set_u16(object.get(), NFTNL_OBJ_CT_TIMEOUT_L3PROTO, NFPROTO_IPV4);
        nftnl_obj_set_u8(object.get(), NFTNL_OBJ_CT_TIMEOUT_L4PROTO, timeouts.protocol);
        // libnftnl copies an array of this size.
        std::vector<std::uint32_t> seconds = timeouts.seconds;
        seconds.resize(NFTNL_CTTIMEOUT_ARRAY_MAX);
        nftnl_obj_set_data(object.get(), NFTNL_OBJ_CT_TIMEOUT_ARRAY, seconds.data(),
                           static_cast<std::uint32_t>(seconds.size() * sizeof seconds.front()));
        nftnl_obj_nlmsg_build_payload(message, object.get());
      });
}

void Batch::add_chain(const TableName& table, const Chain& chain) {
  put(NFT_MSG_NEWCHAIN, table, NLM_F_CREATE | NLM_F_EXCL,
      "add chain " + chain.name + " to table " + table.text(), [&](nlmsghdr* message) {
        auto object = make_chain_object();
        nftnl_chain_set_str(object.get(), NFTNL_CHAIN_TABLE, table.name.c_str());
        nftnl_chain_set_str(object.get(), NFTNL_CHAIN_NAME, chain.name.c_str());
        if (chain.hook) {
          nftnl_chain_set_str(object.get(), NFTNL_CHAIN_TYPE, chain.hook->type.c_str());
          nftnl_chain_set_u32(object.get(), NFTNL_CHAIN_HOOKNUM, chain.hook->number);
          nftnl_chain_set_s32(object.get(), NFTNL_CHAIN_PRIO, chain.hook->priority);
          nftnl_chain_set_u32(object.get(), NFTNL_CHAIN_POLICY, chain.hook->policy);
        }
        nftnl_chain_nlmsg_build_payload(message, object.get());
      });
}

void Batch::add_rule(const TableName& table, const Chain& chain, std::size_t number) {
  put(NFT_MSG_NEWRULE, table, NLM_F_CREATE | NLM_F_APPEND,
      "add rule " + std::to_string(number + 1) + " to chain " + chain.name + " of table " +
          table.text(),
      [&](nlmsghdr* message) {
        auto object = make_rule_object();
        nftnl_rule_set_str(object.get(), NFTNL_RULE_TABLE, table.name.c_str());
        nftnl_rule_set_str(object.get(), NFTNL_RULE_CHAIN, chain.name.c_str());
        for (const Step& step : chain.rules[number]) {
          nftnl_rule_add_expr(object.get(), encode_step(step).release());  // the rule frees it
        }
        nftnl_rule_nlmsg_build_payload(message, object.get());
      });
}

std::span<const char> Batch::finish() {
  // The kernel reports refused messages on its own; success must be requested with the last one.
  // The cast follows libmnl; every message is aligned.
  reinterpret_cast<nlmsghdr*>(buffer_.data() + last_)->nlmsg_flags |= NLM_F_ACK;
  used_ += nftnl_batch_end(reserve(), static_cast<std::uint32_t>(what_.size()))->nlmsg_len;
  return {buffer_.data(), used_};
}

std::string Batch::what(std::uint32_t sequence) const {
  return sequence < what_.size() ? what_[sequence] : std::string{};
}

}  // namespace agbox::nft
