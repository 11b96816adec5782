// SPDX-License-Identifier: Apache-2.0
#include "model/spec/limits.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>

namespace agbox {
namespace {

std::unexpected<Error> not_a_limit(std::string why) {
  return fail(reason::kInvalidArgument, std::move(why));
}

bool is_digit(char c, bool hexadecimal) {
  return (c >= '0' && c <= '9') ||
         (hexadecimal && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')));
}

// Takes the '_' out of 1_000; nullopt if one is not between two digits. The prefix 0x, which `text`
// does not include, counts as a digit.
std::optional<std::string> without_separators(std::string_view text, bool hexadecimal) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
      continue;
    }
    const bool follows = i == 0 ? hexadecimal : is_digit(text[i - 1], hexadecimal);
    const bool precedes = i + 1 < text.size() && is_digit(text[i + 1], hexadecimal);
    if (!follows || !precedes) return std::nullopt;
  }
  return plain;
}

// A floating-point literal as Go reads it: sign, decimal or hexadecimal (which needs a p exponent),
// '_' between digits, inf and nan.
std::optional<double> parse_float(std::string_view text) {
  bool negative = false;
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  const auto plain = without_separators(text, hexadecimal);
  if (!plain || plain->empty()) return std::nullopt;
  if (plain->front() == '-' || plain->front() == '+') return std::nullopt;
  if (hexadecimal && plain->find_first_of("pP") == std::string::npos) return std::nullopt;
  double value = 0;
  const char* end = plain->data() + plain->size();
  const auto [stopped, problem] = std::from_chars(
      plain->data(), end, value, hexadecimal ? std::chars_format::hex : std::chars_format::general);
  if (stopped != end) return std::nullopt;
  if (problem == std::errc::invalid_argument) return std::nullopt;
  if (problem == std::errc::result_out_of_range) return std::nullopt;
  return negative ? -value : value;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// The power of two of k, kb, kib ... pib; nothing for an unknown unit.
std::optional<int> unit_shift(const std::string& unit) {
  if (unit.empty() || unit == "b") return 0;
  const std::size_t power = std::string_view("kmgtp").find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view rest = std::string_view(unit).substr(1);
  if (!rest.empty() && rest != "b" && rest != "ib") return std::nullopt;
  return static_cast<int>(power + 1) * 10;
}

// No number that means anything is longer, and messages repeat the text.
constexpr std::size_t kLimitBytes = 64;
// What every container engine requires.
constexpr std::int64_t kMinMemoryBytes = std::int64_t{6} << 20;
constexpr std::int64_t kMinMillicores = 10;

Result<> check_length(const std::string& field, const std::string& text) {
  if (text.size() <= kLimitBytes) return {};
  return not_a_limit(field + " has more than " + std::to_string(kLimitBytes) + " characters");
}

}  // namespace

Result<CpuLimit> CpuLimit::parse(std::string_view text) {
  const auto value = parse_float(text);
  if (!value) return not_a_limit("not a number of CPUs; write for example 2 or 0.5");
  if (!std::isfinite(*value)) return not_a_limit("must be a finite number");
  if (*value <= 0) return not_a_limit("must be > 0");
  const double millicores = std::floor(*value * 1000);
  if (millicores < 1) return not_a_limit("must resolve to at least 1 millicore (0.001)");
  if (millicores > 1e12) return not_a_limit("must be at most 1000000000 CPUs");
  return CpuLimit(static_cast<std::int64_t>(millicores));
}

Result<ByteLimit> ByteLimit::parse(std::string_view text) {
  const std::size_t last = text.find_last_of("0123456789. ");
  if (last == std::string_view::npos)
    return not_a_limit("invalid size: '" + std::string(text) + "'");
  const bool spaced = text[last] == ' ';
  const std::string_view number = text.substr(0, spaced ? last : last + 1);
  const std::string_view unit = text.substr(last + 1);
  const auto value = parse_float(number);
  if (!value || !std::isfinite(*value)) {
    return not_a_limit("invalid size: '" + std::string(text) + "'; write for example 512m or 4g");
  }
  if (*value < 0) return not_a_limit("invalid size: '" + std::string(text) + "'");
  const auto shift = unit_shift(lower_case(unit));
  if (!shift) return not_a_limit("invalid suffix: '" + std::string(unit) + "'");
  const double bytes = std::ldexp(*value, *shift);
  if (bytes >= 9223372036854775808.0) return not_a_limit("must be below 8 EiB");
  if (bytes < 1) return not_a_limit("must be > 0");
  return ByteLimit(static_cast<std::int64_t>(bytes));
}

Result<> check_cpu_limit(const std::string& field, const std::string& text) {
  AGBOX_TRY_VOID(check_length(field, text));
  AGBOX_TRY(limit, parse_limit<CpuLimit>(field, "cpu_limit", text));
  if (!limit || limit->millicores() >= kMinMillicores) return {};
  return not_a_limit(field + ": cpu_limit \"" + text +
                     "\": must be at least 0.01, the minimum of the container engine");
}

Result<> check_engine_cpus(const std::string& field, const std::string& text, std::int64_t cpus) {
  AGBOX_TRY(limit, parse_limit<CpuLimit>(field, "cpu_limit", text));
  if (cpus <= 0 || !limit || limit->millicores() <= cpus * 1000) return {};
  return not_a_limit(field + ": cpu_limit \"" + text + "\": must be at most " +
                     std::to_string(cpus) + ", the number of CPUs of the container engine");
}

Result<> check_memory_limit(const std::string& field, const std::string& text) {
  AGBOX_TRY_VOID(check_length(field, text));
  AGBOX_TRY(limit, parse_limit<ByteLimit>(field, field, text));
  if (!limit || limit->bytes() >= kMinMemoryBytes) return {};
  return not_a_limit(field + ": " + field + " \"" + text +
                     "\": must be at least 6m, the minimum of the container engine");
}

Result<> check_disk_limit(const std::string& field, const std::string& text) {
  AGBOX_TRY_VOID(check_length(field, text));
  AGBOX_TRY_VOID(parse_limit<ByteLimit>(field, field, text));
  return {};
}

}  // namespace agbox
