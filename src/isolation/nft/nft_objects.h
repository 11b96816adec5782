// SPDX-License-Identifier: Apache-2.0
// RAII owners for libnftnl objects.
#pragma once

#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/object.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>

#include <memory>
#include <new>
#include <string>

#include "isolation/nft/nft_table.h"

namespace agbox::nft {

template <auto Free>
struct FreeWith {
  template <class Object>
  void operator()(Object* object) const {
    Free(object);
  }
};

// libnftnl returns null only if out of memory.
template <class Owner>
Owner owned(typename Owner::pointer object) {
  if (object == nullptr) throw std::bad_alloc();
  return Owner(object);
}

using TableObject = std::unique_ptr<nftnl_table, FreeWith<nftnl_table_free>>;
using ChainObject = std::unique_ptr<nftnl_chain, FreeWith<nftnl_chain_free>>;
using RuleObject = std::unique_ptr<nftnl_rule, FreeWith<nftnl_rule_free>>;
using SetObject = std::unique_ptr<nftnl_set, FreeWith<nftnl_set_free>>;
using StatefulObject = std::unique_ptr<nftnl_obj, FreeWith<nftnl_obj_free>>;
using ExpressionObject = std::unique_ptr<nftnl_expr, FreeWith<nftnl_expr_free>>;

inline TableObject make_table_object() {
  return owned<TableObject>(nftnl_table_alloc());
}
inline ChainObject make_chain_object() {
  return owned<ChainObject>(nftnl_chain_alloc());
}
inline RuleObject make_rule_object() {
  return owned<RuleObject>(nftnl_rule_alloc());
}
inline SetObject make_set_object() {
  return owned<SetObject>(nftnl_set_alloc());
}
inline StatefulObject make_stateful_object() {
  return owned<StatefulObject>(nftnl_obj_alloc());
}
inline ExpressionObject make_expression_object(const char* kind) {
  return owned<ExpressionObject>(nftnl_expr_alloc(kind));
}

// The set of this name, as requests refer to it.
inline SetObject set_object(const TableName& table, const std::string& name) {
  auto object = make_set_object();
  nftnl_set_set_str(object.get(), NFTNL_SET_TABLE, table.name.c_str());
  nftnl_set_set_str(object.get(), NFTNL_SET_NAME, name.c_str());
  return object;
}

inline nftnl_set_elem* add_key(nftnl_set* set, const Bytes& key) {
  nftnl_set_elem* made = nftnl_set_elem_alloc();
  if (made == nullptr) throw std::bad_alloc();
  nftnl_set_elem_add(set, made);  // the set frees it
  nftnl_set_elem_set(made, NFTNL_SET_ELEM_KEY, key.data(), static_cast<std::uint32_t>(key.size()));
  return made;
}

}  // namespace agbox::nft
