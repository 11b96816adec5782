// SPDX-License-Identifier: Apache-2.0
#include "model/byte_size.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace agbox {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 9> kUnits = {{{"b", 1},
                                         {"kib", 1ULL << 10},
                                         {"mib", 1ULL << 20},
                                         {"gib", 1ULL << 30},
                                         {"tib", 1ULL << 40},
                                         {"kb", 1'000},
                                         {"mb", 1'000'000},
                                         {"gb", 1'000'000'000},
                                         {"tb", 1'000'000'000'000}}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text) {
  const auto invalid = [&](std::string_view why) {
    return fail(Reason::InvalidArgument, "invalid size \"" + std::string(text) + "\"" +
                                             std::string(why) +
                                             "; write for example 512MiB or 4GiB");
  };
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc::result_out_of_range) return invalid(" is too large");
  if (problem != std::errc()) return invalid("");
  const std::string name = lower_case({rest, end});
  if (name.empty()) {
    if (number == 0) return 0;
    return invalid(" has no unit");
  }
  const auto unit = std::ranges::find(kUnits, name, &Unit::name);
  if (unit == kUnits.end()) return invalid("");
  std::uint64_t bytes = 0;
  if (__builtin_mul_overflow(number, unit->bytes, &bytes)) return invalid(" is too large");
  return bytes;
}

}  // namespace agbox
