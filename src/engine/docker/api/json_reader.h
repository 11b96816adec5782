// SPDX-License-Identifier: Apache-2.0
// Reads what an engine says, which may be anything. Absent and null fields read as nothing; a field
// of the wrong kind reads as nothing too and is remembered, so that a function that reads twenty
// fields asks once, at the end, whether all of them could be read.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/docker/api/engine_error.h"

namespace agbox {

// One whole document, strictly; else Garbled.
EngineResult<boost::json::value> parse_json(std::string_view text);

class JsonReader {
 public:
  // `problem` gets the first thing that could not be read, and must outlive the reader and all that
  // come from it.
  JsonReader(const boost::json::value& value, std::string& problem)
      : JsonReader(&value, problem, {}) {}

  JsonReader operator[](std::string_view key) const;
  std::vector<JsonReader> items() const;
  std::vector<std::pair<std::string, JsonReader>> fields() const;

  bool is_present() const { return value_ != nullptr; }
  std::string text() const;
  bool flag() const;
  std::int64_t number() const;
  std::vector<std::string> texts() const;
  std::map<std::string, std::string> text_map() const;
  // RFC 3339; nothing for the year 1, which is how the engine writes "never".
  std::optional<WallTime> time() const;

  // For fields without which the answer makes no sense.
  std::string required_text() const;

 private:
  JsonReader(const boost::json::value* value, std::string& problem, std::string path)
      : value_(value), problem_(&problem), path_(std::move(path)) {}
  void complain(std::string_view expected) const;

  const boost::json::value* value_;  // null where it is absent
  std::string* problem_;
  std::string path_;
};

// 2026-01-02T03:04:05.678901234Z or with an offset; nothing where it is not one.
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace agbox
