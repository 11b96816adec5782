// SPDX-License-Identifier: Apache-2.0
// Takes apart what the engine sends of a container's log with times: one frame per line, or per
// part of a long line, of a header, the time, a space and the bytes. What the container printed is
// untrusted, and comes out unchanged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_error.h"
#include "model/sandbox/container_log.h"

namespace agbox {

class LogFrames {
 public:
  // Without what comes before `after`, which the engine may send once more.
  explicit LogFrames(std::optional<LogPosition> after = std::nullopt) : after_(after) {}

  // What has come with these bytes; lines of one output that follow each other are one piece.
  // Garbled if they are no frames; Refused if the engine reports in them that it cannot read on.
  EngineResult<std::vector<LogPiece>> feed(std::string_view bytes);

 private:
  enum class Part { Header, Time, Data, Problem };
  void take_header(std::string_view& bytes);
  EngineResult<> begin_frame();
  EngineResult<> take_time(std::string_view& bytes);
  void take_data(std::string_view& bytes, std::vector<LogPiece>& pieces);
  EngineResult<> take_problem(std::string_view& bytes);

  std::optional<LogPosition> after_;  // until something after it has come
  Part part_ = Part::Header;
  std::array<unsigned char, 8> header_{};  // which output, three zeros, and the frame's size
  std::size_t header_bytes_ = 0;           // that have come
  std::uint32_t left_ = 0;                 // of the current frame
  v1::OutputStream stream_ = v1::OUTPUT_STREAM_STDOUT;
  std::string text_;  // of the time, or of the engine's problem
  LogPosition position_;
};

}  // namespace agbox
