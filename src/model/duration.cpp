// SPDX-License-Identifier: Apache-2.0
#include "model/duration.h"

#include <array>
#include <cstdint>
#include <optional>

namespace agbox {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t nanoseconds;
};

// Longer names first where one begins with another: "ms" before "m".
constexpr std::array<Unit, 8> kUnits = {{{"ns", 1},
                                         {"us", 1'000},
                                         {"\xC2\xB5s", 1'000},  // µ, U+00B5
                                         {"\xCE\xBCs", 1'000},  // μ, U+03BC
                                         {"ms", 1'000'000},
                                         {"s", 1'000'000'000},
                                         {"m", 60'000'000'000},
                                         {"h", 3'600'000'000'000}}};

std::unexpected<Error> not_a_duration(std::string_view text) {
  return fail(reason::kInvalidArgument, "invalid duration \"" + std::string(text) +
                                            "\"; write for example 30m, 1h30m or 250ms");
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

const Unit* take_unit(std::string_view& rest) {
  for (const Unit& unit : kUnits) {
    if (rest.starts_with(unit.name)) {
      rest.remove_prefix(unit.name.size());
      return &unit;
    }
  }
  return nullptr;
}

// value * 10 + digit, or nullopt on overflow.
std::optional<std::int64_t> append_digit(std::int64_t value, char digit) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(value, 10, &out) || __builtin_add_overflow(out, digit - '0', &out)) {
    return std::nullopt;
  }
  return out;
}

// One <decimal><unit> from the front of `rest`, in nanoseconds.
std::optional<std::int64_t> take_term(std::string_view& rest) {
  std::int64_t whole = 0;
  bool has_digits = false;
  while (!rest.empty() && is_digit(rest[0])) {
    const auto more = append_digit(whole, rest[0]);
    if (!more) return std::nullopt;
    whole = *more;
    has_digits = true;
    rest.remove_prefix(1);
  }
  // The fraction as numerator / scale; digits beyond what fits are below a nanosecond of an hour.
  std::int64_t numerator = 0;
  std::int64_t scale = 1;
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    while (!rest.empty() && is_digit(rest[0])) {
      if (scale <= 1'000'000'000'000'000) {
        numerator = numerator * 10 + (rest[0] - '0');
        scale *= 10;
      }
      has_digits = true;
      rest.remove_prefix(1);
    }
  }
  if (!has_digits) return std::nullopt;
  const Unit* unit = take_unit(rest);
  if (unit == nullptr) return std::nullopt;
  std::int64_t nanoseconds = 0;
  if (__builtin_mul_overflow(whole, unit->nanoseconds, &nanoseconds)) return std::nullopt;
  const long double fraction = static_cast<long double>(numerator) /
                               static_cast<long double>(scale) *
                               static_cast<long double>(unit->nanoseconds);
  if (__builtin_add_overflow(nanoseconds, static_cast<std::int64_t>(fraction), &nanoseconds)) {
    return std::nullopt;
  }
  return nanoseconds;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return std::chrono::nanoseconds(0);
  if (rest.empty()) return not_a_duration(text);
  std::int64_t total = 0;
  while (!rest.empty()) {
    const auto term = take_term(rest);
    if (!term || __builtin_add_overflow(total, *term, &total)) return not_a_duration(text);
  }
  return std::chrono::nanoseconds(negative ? -total : total);
}

}  // namespace agbox
