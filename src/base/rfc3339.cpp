// SPDX-License-Identifier: Apache-2.0
#include "base/rfc3339.h"

#include <chrono>

namespace agbox {

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  // Reads exactly `digits` digits and the text that must follow them.
  const auto take = [&text](std::size_t digits, std::string_view follows) -> std::optional<int> {
    if (text.size() < digits + follows.size()) return std::nullopt;
    int number = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text[i] < '0' || text[i] > '9') return std::nullopt;
      number = number * 10 + (text[i] - '0');
    }
    if (text.substr(digits, follows.size()) != follows) return std::nullopt;
    text.remove_prefix(digits + follows.size());
    return number;
  };
  const auto year = take(4, "-");
  const auto month = year ? take(2, "-") : std::nullopt;
  const auto day = month ? take(2, "T") : std::nullopt;
  const auto hour = day ? take(2, ":") : std::nullopt;
  const auto minute = hour ? take(2, ":") : std::nullopt;
  const auto second = minute ? take(2, "") : std::nullopt;
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  // Nanoseconds in 64 bits cover 1678 to 2261.
  if (!date.ok() || *year < 1700 || *year > 2200) return std::nullopt;

  std::int64_t nanoseconds = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    std::size_t digits = 0;
    for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), ++digits) {
      if (digits < 9) nanoseconds = nanoseconds * 10 + (text[0] - '0');
    }
    if (digits == 0) return std::nullopt;
    for (; digits < 9; ++digits) nanoseconds *= 10;
  }
  std::chrono::minutes offset{0};
  if (text != "Z") {
    if (text.size() != 6 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
    const int sign = text[0] == '+' ? 1 : -1;
    text.remove_prefix(1);
    const auto hours = take(2, ":");
    const auto minutes = hours ? take(2, "") : std::nullopt;
    if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
    offset = sign * (std::chrono::hours(*hours) + std::chrono::minutes(*minutes));
  }
  return WallTime(std::chrono::sys_days(date).time_since_epoch()) + std::chrono::hours(*hour) +
         std::chrono::minutes(*minute) + std::chrono::seconds(*second) +
         std::chrono::nanoseconds(nanoseconds) - offset;
}

}  // namespace agbox
