// SPDX-License-Identifier: Apache-2.0
#include "cli/format/elapsed.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace agbox::cli {

std::string seconds_text(std::chrono::nanoseconds time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1fs", std::chrono::duration<double>(time).count());
  return text.data();
}

std::string duration_text(const google::protobuf::Duration& duration) {
  return google::protobuf::util::TimeUtil::ToString(duration);
}

std::string age_text(const google::protobuf::Timestamp& then, WallTime now) {
  using namespace std::chrono;
  const std::int64_t now_seconds = floor<seconds>(now).time_since_epoch().count();
  const std::int64_t age = std::max<std::int64_t>(0, now_seconds - then.seconds());
  if (age < 60) return std::to_string(age) + "s";
  if (age < 60 * 60) return std::to_string(age / 60) + "m";
  if (age < 24 * 60 * 60) return std::to_string(age / (60 * 60)) + "h";
  return std::to_string(age / (24 * 60 * 60)) + "d";
}

std::string second_text(const google::protobuf::Timestamp& time) {
  return google::protobuf::util::TimeUtil::ToString(
      google::protobuf::util::TimeUtil::SecondsToTimestamp(time.seconds()));
}

}  // namespace agbox::cli
