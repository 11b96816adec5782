// SPDX-License-Identifier: Apache-2.0
#include "control/page_token.h"

#include <charconv>

namespace agbox {
namespace {

template <class Integer>
bool take_number(std::string_view& rest, Integer& into) {
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), into);
  const auto length = static_cast<std::size_t>(end - rest.data());
  if (problem != std::errc() || length >= rest.size() || rest[length] != '/') return false;
  rest.remove_prefix(length + 1);
  return true;
}

}  // namespace

std::unexpected<Error> foreign_page_token() {
  return fail(reason::kInvalidArgument,
              "page_token is not one that this daemon gave out; leave it empty to begin again");
}

PageToken PageToken::of(const v1::SandboxHandle& handle) {
  PageToken token;
  token.minus_seconds_ = -handle.created_at().seconds();
  token.minus_nanos_ = -handle.created_at().nanos();
  token.sandbox_id_ = handle.sandbox_id();
  return token;
}

std::string PageToken::text() const {
  return std::to_string(minus_seconds_) + "/" + std::to_string(minus_nanos_) + "/" + sandbox_id_;
}

Result<PageToken> PageToken::parse(std::string_view text) {
  PageToken token;
  if (text.empty()) return token;
  std::string_view rest = text;
  if (!take_number(rest, token.minus_seconds_) || !take_number(rest, token.minus_nanos_)) {
    return foreign_page_token();
  }
  token.sandbox_id_ = rest;
  return token;
}

}  // namespace agbox
