// SPDX-License-Identifier: Apache-2.0
#include "model/ids.h"

#include <algorithm>
#include <string>

namespace agbox {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

Result<> check_id(std::string_view field, std::string_view id) {
  if (id.size() < 4) {
    return fail(reason::kInvalidArgument, std::string(field) + " must be at least 4 characters");
  }
  const bool well_formed =
      id.size() <= 200 && is_letter_or_digit(id.front()) && is_letter_or_digit(id.back()) &&
      std::ranges::all_of(id, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_'; });
  if (well_formed) return {};
  return fail(reason::kInvalidArgument,
              std::string(field) +
                  " must be 4-200 characters, start and end with a letter or digit, and contain "
                  "only letters, digits, hyphens, or underscores");
}

}  // namespace agbox
