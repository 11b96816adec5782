// SPDX-License-Identifier: Apache-2.0
#include "model/exec/exec_user.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>

#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::size_t kMaxUserBytes = 128;

bool is_decimal(char c) {
  return c >= '0' && c <= '9';
}

// What useradd accepts in any distribution, and more.
bool is_name_character(char c) {
  return is_decimal(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '-' || c == '.' || c == '$' || c == '@' || c == '+';
}

Result<> check_user_part(std::string_view what, std::string_view name) {
  if (name.empty()) return invalid_argument("user: the " + std::string(what) + " is empty");
  if (!std::ranges::all_of(name, is_name_character)) {
    return invalid_argument("user: the " + std::string(what) + " " + quoted_excerpt(name) +
                            " is neither a name nor a number, for example agbox, root or 1000");
  }
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = std::ranges::all_of(name, is_decimal);
  constexpr std::uint32_t kMaxId = std::numeric_limits<std::int32_t>::max();
  if (is_number && (problem != std::errc() || number > kMaxId)) {
    return invalid_argument("user: the " + std::string(what) + " " + std::string(name) +
                            " is larger than " + std::to_string(kMaxId));
  }
  return {};
}

}  // namespace

Result<> check_exec_user(std::string_view user) {
  if (user.empty()) return {};
  if (user.size() > kMaxUserBytes) {
    return invalid_argument("user is longer than " + std::to_string(kMaxUserBytes) + " bytes");
  }
  const std::size_t colon = user.find(':');
  AGBOX_TRY_VOID(check_user_part("name", user.substr(0, colon)));
  if (colon == std::string_view::npos) return {};
  return check_user_part("group", user.substr(colon + 1));
}

}  // namespace agbox
