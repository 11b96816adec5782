// SPDX-License-Identifier: Apache-2.0
// Splits a stream into lines; buffers at most one line of bounded length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/engine_error.h"

namespace agbox {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t longest_line = std::size_t{1} << 20)
      : longest_line_(longest_line) {}

  // The lines completed by this chunk, without line ends; blank ones are dropped.
  EngineResult<std::vector<std::string>> feed(std::string_view piece) {
    std::vector<std::string> lines;
    while (!piece.empty()) {
      const std::size_t end = piece.find('\n');
      const std::string_view part = piece.substr(0, end);
      if (begun_.size() + part.size() > longest_line_) {
        return engine_fail(EngineErrorKind::Garbled,
                           "a line of the engine's answer has more than " +
                               std::to_string(longest_line_) + " bytes");
      }
      begun_ += part;
      if (end == std::string_view::npos) break;
      piece.remove_prefix(end + 1);
      if (begun_.ends_with('\r')) begun_.pop_back();
      if (!begun_.empty()) lines.push_back(std::move(begun_));
      begun_.clear();
    }
    return lines;
  }

 private:
  std::size_t longest_line_;
  std::string begun_;
};

}  // namespace agbox
