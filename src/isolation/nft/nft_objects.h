// SPDX-License-Identifier: Apache-2.0
// RAII owners for libnftnl objects.
#pragma once

#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>

#include <memory>
#include <new>

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
inline ExpressionObject make_expression_object(const char* kind) {
  return owned<ExpressionObject>(nftnl_expr_alloc(kind));
}

}  // namespace agbox::nft
