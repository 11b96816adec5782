// SPDX-License-Identifier: Apache-2.0
// The flag --timeout of commands that wait.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <expected>
#include <optional>
#include <string>

#include "model/duration.h"

namespace agbox::cli {

class WaitLimit {
 public:
  explicit WaitLimit(CLI::App& command) {
    command
        .add_option("--timeout", text_, "Wait at most this long, e.g. 30s, then exit with code 124")
        ->type_name("DURATION")
        ->take_last();
  }

  // nullopt: no limit. The error is the message of the usage error.
  std::expected<std::optional<std::chrono::nanoseconds>, std::string> value() const {
    if (text_.empty()) return std::nullopt;
    const auto parsed = parse_duration(text_);
    if (parsed && *parsed > std::chrono::nanoseconds(0)) return *parsed;
    return std::unexpected("--timeout must be a positive duration such as 30s or 1h30m: " + text_);
  }

 private:
  std::string text_;
};

}  // namespace agbox::cli
