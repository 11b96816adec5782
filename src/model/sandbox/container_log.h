// SPDX-License-Identifier: Apache-2.0
// What a container printed: which part of it is wanted, and where a reader is. The engine knows
// lines by the time at which they were printed; a long line is several pieces of the same time. So
// a position is a time and a number of bytes. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agbox/v1/exec.pb.h"
#include "base/clock.h"
#include "base/result.h"

namespace agbox {

// A container as the engine knows it.
struct ContainerId {
  std::string engine_id{};     // the engine that it was created on
  std::string container_id{};  // empty if it does not exist

  bool operator==(const ContainerId&) const = default;
};

struct NamedContainer {
  std::string name;  // as clients know it
  ContainerId id;
};

struct LogPosition {
  WallTime time{};          // of the latest line
  std::uint64_t bytes = 0;  // that were read of lines of this time

  bool operator==(const LogPosition&) const = default;
};

// As clients keep it; they do not interpret it.
std::string cursor_of(const LogPosition& position);
// INVALID_ARGUMENT if it is not one of ours.
Result<LogPosition> parse_cursor(std::string_view cursor);

struct LogQuery {
  bool with_stdout = true;
  bool with_stderr = true;
  // Until the container ends, instead of the current end.
  bool follow = false;
  std::optional<WallTime> since{};
  std::optional<std::uint64_t> tail{};  // lines
  std::optional<LogPosition> after{};   // instead of `since` and `tail`
};

// Consecutive bytes of one output.
struct LogPiece {
  v1::OutputStream stream = v1::OUTPUT_STREAM_STDOUT;
  std::string data{};
  LogPosition end{};  // after `data`

  bool operator==(const LogPiece&) const = default;
};

}  // namespace agbox
