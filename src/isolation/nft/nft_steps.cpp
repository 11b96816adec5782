// SPDX-License-Identifier: Apache-2.0
#include "isolation/nft/nft_steps.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "base/overloaded.h"
#include "isolation/nft/netfilter.h"

namespace agbox::nft {
namespace {

constexpr std::uint32_t kRegister = NFT_REG_1;
constexpr std::uint64_t kSecond = 1;  // the unit of rates

void set_bytes(nftnl_expr* expression, std::uint16_t attribute, const Bytes& bytes) {
  nftnl_expr_set(expression, attribute, bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

Bytes get_bytes(const nftnl_expr* expression, std::uint16_t attribute) {
  std::uint32_t size = 0;
  const auto* data = static_cast<const std::uint8_t*>(nftnl_expr_get(expression, attribute, &size));
  return data == nullptr ? Bytes{} : Bytes(data, data + size);
}

std::string get_text(const nftnl_expr* expression, std::uint16_t attribute) {
  const char* text = nftnl_expr_get_str(expression, attribute);
  return text == nullptr ? std::string{} : std::string(text);
}

bool uses_our_register(const nftnl_expr* expression, std::uint16_t attribute) {
  return nftnl_expr_get_u32(expression, attribute) == kRegister;
}

bool is_zero(const Bytes& bytes) {
  return std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte == 0; });
}

// Its attributes that are numbers of 32 bits.
using Numbers = std::initializer_list<std::pair<std::uint16_t, std::uint32_t>>;

ExpressionObject expression_with(const char* kind, Numbers numbers) {
  auto made = make_expression_object(kind);
  for (const auto& [attribute, value] : numbers) nftnl_expr_set_u32(made.get(), attribute, value);
  return made;
}

// Adds the register's key to the set, with a limit of its own.
ExpressionObject limit_per_element(const std::string& set, ExpressionObject limit) {
  auto made = expression_with("dynset", {{NFTNL_EXPR_DYNSET_SREG_KEY, kRegister},
                                         {NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_ADD}});
  nftnl_expr_set_str(made.get(), NFTNL_EXPR_DYNSET_SET_NAME, set.c_str());
  nftnl_expr_set(made.get(), NFTNL_EXPR_DYNSET_EXPR, limit.release(), 0);
  return made;
}

struct Encode {
  ExpressionObject operator()(const LoadMeta& step) const {
    return expression_with("meta",
                           {{NFTNL_EXPR_META_KEY, step.key}, {NFTNL_EXPR_META_DREG, kRegister}});
  }
  ExpressionObject operator()(const LoadPayload& step) const {
    return expression_with("payload", {{NFTNL_EXPR_PAYLOAD_BASE, step.base},
                                       {NFTNL_EXPR_PAYLOAD_OFFSET, step.offset},
                                       {NFTNL_EXPR_PAYLOAD_LEN, step.length},
                                       {NFTNL_EXPR_PAYLOAD_DREG, kRegister}});
  }
  ExpressionObject operator()(const LoadConnection& step) const {
    auto made =
        expression_with("ct", {{NFTNL_EXPR_CT_KEY, step.key}, {NFTNL_EXPR_CT_DREG, kRegister}});
    if (step.direction) nftnl_expr_set_u8(made.get(), NFTNL_EXPR_CT_DIR, *step.direction);
    return made;
  }
  ExpressionObject operator()(const LoadRoute& step) const {
    return expression_with("fib", {{NFTNL_EXPR_FIB_RESULT, step.result},
                                   {NFTNL_EXPR_FIB_FLAGS, step.flags},
                                   {NFTNL_EXPR_FIB_DREG, kRegister}});
  }
  ExpressionObject operator()(const Mask& step) const {
    const auto length = static_cast<std::uint32_t>(step.bits.size());
    auto made = expression_with("bitwise", {{NFTNL_EXPR_BITWISE_SREG, kRegister},
                                            {NFTNL_EXPR_BITWISE_DREG, kRegister},
                                            {NFTNL_EXPR_BITWISE_LEN, length}});
    set_bytes(made.get(), NFTNL_EXPR_BITWISE_MASK, step.bits);
    set_bytes(made.get(), NFTNL_EXPR_BITWISE_XOR, Bytes(step.bits.size()));
    return made;
  }
  ExpressionObject operator()(const Compare& step) const {
    auto made =
        expression_with("cmp", {{NFTNL_EXPR_CMP_SREG, kRegister},
                                {NFTNL_EXPR_CMP_OP, step.equal ? NFT_CMP_EQ : NFT_CMP_NEQ}});
    set_bytes(made.get(), NFTNL_EXPR_CMP_DATA, step.value);
    return made;
  }
  ExpressionObject operator()(const Lookup& step) const {
    const std::uint32_t flags = step.contained ? 0U : static_cast<std::uint32_t>(NFT_LOOKUP_F_INV);
    auto made = expression_with(
        "lookup", {{NFTNL_EXPR_LOOKUP_SREG, kRegister}, {NFTNL_EXPR_LOOKUP_FLAGS, flags}});
    nftnl_expr_set_str(made.get(), NFTNL_EXPR_LOOKUP_SET, step.set.c_str());
    return made;
  }
  ExpressionObject operator()(const OverBudget& step) const {
    return limit_per_element(
        step.set,
        expression_with("connlimit", {{NFTNL_EXPR_CONNLIMIT_COUNT, step.connections},
                                      {NFTNL_EXPR_CONNLIMIT_FLAGS, NFT_CONNLIMIT_F_INV}}));
  }
  ExpressionObject operator()(const OverRate& step) const {
    auto limit = expression_with("limit", {{NFTNL_EXPR_LIMIT_BURST, step.burst},
                                           {NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS},
                                           {NFTNL_EXPR_LIMIT_FLAGS, NFT_LIMIT_F_INV}});
    nftnl_expr_set_u64(limit.get(), NFTNL_EXPR_LIMIT_RATE, step.per_second);
    nftnl_expr_set_u64(limit.get(), NFTNL_EXPR_LIMIT_UNIT, kSecond);
    return limit_per_element(step.set, std::move(limit));
  }
  ExpressionObject operator()(const UseTimeouts& step) const {
    auto made = expression_with("objref", {{NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_CT_TIMEOUT}});
    nftnl_expr_set_str(made.get(), NFTNL_EXPR_OBJREF_IMM_NAME, step.timeouts.c_str());
    return made;
  }
  ExpressionObject operator()(const Count&) const { return make_expression_object("counter"); }
  ExpressionObject operator()(const Reject& step) const {
    auto made = expression_with("reject", {{NFTNL_EXPR_REJECT_TYPE, step.type}});
    nftnl_expr_set_u8(made.get(), NFTNL_EXPR_REJECT_CODE, step.code);
    return made;
  }
  ExpressionObject operator()(const Verdict& step) const {
    auto made = expression_with("immediate",
                                {{NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT},
                                 {NFTNL_EXPR_IMM_VERDICT, static_cast<std::uint32_t>(step.code)}});
    if (!step.chain.empty()) {
      nftnl_expr_set_str(made.get(), NFTNL_EXPR_IMM_CHAIN, step.chain.c_str());
    }
    return made;
  }
  ExpressionObject operator()(const Foreign& step) const {
    die("a rule of ours has a foreign step: " + step.what);
  }
};

Step decode_mask(const nftnl_expr* expression) {
  const bool is_mask = uses_our_register(expression, NFTNL_EXPR_BITWISE_SREG) &&
                       uses_our_register(expression, NFTNL_EXPR_BITWISE_DREG) &&
                       nftnl_expr_get_u32(expression, NFTNL_EXPR_BITWISE_OP) == 0 &&
                       is_zero(get_bytes(expression, NFTNL_EXPR_BITWISE_XOR));
  if (!is_mask) return Foreign{"bitwise"};
  return Mask{get_bytes(expression, NFTNL_EXPR_BITWISE_MASK)};
}

Step decode_compare(const nftnl_expr* expression) {
  const std::uint32_t operation = nftnl_expr_get_u32(expression, NFTNL_EXPR_CMP_OP);
  const bool is_known = operation == NFT_CMP_EQ || operation == NFT_CMP_NEQ;
  if (!is_known || !uses_our_register(expression, NFTNL_EXPR_CMP_SREG)) return Foreign{"cmp"};
  return Compare{.equal = operation == NFT_CMP_EQ,
                 .value = get_bytes(expression, NFTNL_EXPR_CMP_DATA)};
}

Step decode_limit_per_element(const nftnl_expr* expression) {
  const auto* limit = static_cast<const nftnl_expr*>(
      nftnl_expr_is_set(expression, NFTNL_EXPR_DYNSET_EXPR)
          ? nftnl_expr_get(expression, NFTNL_EXPR_DYNSET_EXPR, nullptr)
          : nullptr);
  const bool adds = limit != nullptr &&
                    nftnl_expr_get_u32(expression, NFTNL_EXPR_DYNSET_OP) == NFT_DYNSET_OP_ADD &&
                    uses_our_register(expression, NFTNL_EXPR_DYNSET_SREG_KEY);
  if (!adds) return Foreign{"dynset"};
  const std::string kind = get_text(limit, NFTNL_EXPR_NAME);
  const std::string set = get_text(expression, NFTNL_EXPR_DYNSET_SET_NAME);
  if (kind == "connlimit" &&
      nftnl_expr_get_u32(limit, NFTNL_EXPR_CONNLIMIT_FLAGS) == NFT_CONNLIMIT_F_INV) {
    return OverBudget{.set = set,
                      .connections = nftnl_expr_get_u32(limit, NFTNL_EXPR_CONNLIMIT_COUNT)};
  }
  if (kind == "limit" && nftnl_expr_get_u32(limit, NFTNL_EXPR_LIMIT_FLAGS) == NFT_LIMIT_F_INV &&
      nftnl_expr_get_u32(limit, NFTNL_EXPR_LIMIT_TYPE) == NFT_LIMIT_PKTS &&
      nftnl_expr_get_u64(limit, NFTNL_EXPR_LIMIT_UNIT) == kSecond) {
    return OverRate{.set = set,
                    .per_second = nftnl_expr_get_u64(limit, NFTNL_EXPR_LIMIT_RATE),
                    .burst = nftnl_expr_get_u32(limit, NFTNL_EXPR_LIMIT_BURST)};
  }
  return Foreign{"dynset"};
}

Step decode_reference(const nftnl_expr* expression) {
  const bool is_ours =
      nftnl_expr_is_set(expression, NFTNL_EXPR_OBJREF_IMM_TYPE) &&
      nftnl_expr_get_u32(expression, NFTNL_EXPR_OBJREF_IMM_TYPE) == NFT_OBJECT_CT_TIMEOUT;
  if (!is_ours) return Foreign{"objref"};
  return UseTimeouts{get_text(expression, NFTNL_EXPR_OBJREF_IMM_NAME)};
}

Step decode_verdict(const nftnl_expr* expression) {
  if (nftnl_expr_get_u32(expression, NFTNL_EXPR_IMM_DREG) != NFT_REG_VERDICT) {
    return Foreign{"immediate"};
  }
  return Verdict{
      .code = static_cast<std::int32_t>(nftnl_expr_get_u32(expression, NFTNL_EXPR_IMM_VERDICT)),
      .chain = get_text(expression, NFTNL_EXPR_IMM_CHAIN)};
}

Step decode_connection(const nftnl_expr* expression) {
  if (!uses_our_register(expression, NFTNL_EXPR_CT_DREG)) return Foreign{"ct"};
  LoadConnection load{.key = nftnl_expr_get_u32(expression, NFTNL_EXPR_CT_KEY), .direction = {}};
  if (nftnl_expr_is_set(expression, NFTNL_EXPR_CT_DIR)) {
    load.direction = nftnl_expr_get_u8(expression, NFTNL_EXPR_CT_DIR);
  }
  return load;
}

Step decode_lookup(const nftnl_expr* expression) {
  const bool maps = nftnl_expr_is_set(expression, NFTNL_EXPR_LOOKUP_DREG);
  if (maps || !uses_our_register(expression, NFTNL_EXPR_LOOKUP_SREG)) return Foreign{"lookup"};
  const std::uint32_t flags = nftnl_expr_get_u32(expression, NFTNL_EXPR_LOOKUP_FLAGS);
  return Lookup{.set = get_text(expression, NFTNL_EXPR_LOOKUP_SET),
                .contained = (flags & NFT_LOOKUP_F_INV) == 0};
}

}  // namespace

ExpressionObject encode_step(const Step& step) {
  return std::visit(Encode{}, step);
}

Step decode_step(const nftnl_expr* expression) {
  const std::string kind = get_text(expression, NFTNL_EXPR_NAME);
  if (kind == "meta" && uses_our_register(expression, NFTNL_EXPR_META_DREG)) {
    return LoadMeta{nftnl_expr_get_u32(expression, NFTNL_EXPR_META_KEY)};
  }
  if (kind == "payload" && uses_our_register(expression, NFTNL_EXPR_PAYLOAD_DREG)) {
    return LoadPayload{.base = nftnl_expr_get_u32(expression, NFTNL_EXPR_PAYLOAD_BASE),
                       .offset = nftnl_expr_get_u32(expression, NFTNL_EXPR_PAYLOAD_OFFSET),
                       .length = nftnl_expr_get_u32(expression, NFTNL_EXPR_PAYLOAD_LEN)};
  }
  if (kind == "fib" && uses_our_register(expression, NFTNL_EXPR_FIB_DREG)) {
    return LoadRoute{.result = nftnl_expr_get_u32(expression, NFTNL_EXPR_FIB_RESULT),
                     .flags = nftnl_expr_get_u32(expression, NFTNL_EXPR_FIB_FLAGS)};
  }
  if (kind == "reject") {
    return Reject{.type = nftnl_expr_get_u32(expression, NFTNL_EXPR_REJECT_TYPE),
                  .code = nftnl_expr_get_u8(expression, NFTNL_EXPR_REJECT_CODE)};
  }
  if (kind == "ct") return decode_connection(expression);
  if (kind == "bitwise") return decode_mask(expression);
  if (kind == "cmp") return decode_compare(expression);
  if (kind == "lookup") return decode_lookup(expression);
  if (kind == "dynset") return decode_limit_per_element(expression);
  if (kind == "objref") return decode_reference(expression);
  if (kind == "immediate") return decode_verdict(expression);
  if (kind == "counter") return Count{};
  return Foreign{kind};
}

}  // namespace agbox::nft
