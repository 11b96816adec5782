// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON of the engine. Absent and null fields read as empty values; so do fields of
// the wrong type, but the first of them is recorded, so that a function with twenty fields checks
// for errors once, at the end.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/engine_error.h"

namespace agbox {

// Parses exactly one document; otherwise Garbled.
EngineResult<boost::json::value> parse_json(std::string_view text);

class JsonReader {
 public:
  // `problem` receives the first error, and must outlive the reader and those derived from it.
  JsonReader(const boost::json::value& value, std::string& problem)
      : JsonReader(&value, problem, {}) {}

  JsonReader operator[](std::string_view key) const;
  bool has(std::string_view key) const { return (*this)[key].value_ != nullptr; }
  std::vector<JsonReader> items() const;
  std::vector<std::pair<std::string, JsonReader>> fields() const;

  std::string text() const;
  bool flag() const;
  std::int64_t number() const;
  std::vector<std::string> texts() const;
  std::map<std::string, std::string> text_map() const;
  // RFC 3339; nullopt for the year 1, which the engine uses for "never".
  std::optional<WallTime> time() const;

  // For fields without which the answer is useless.
  std::string required_text() const;

 private:
  JsonReader(const boost::json::value* value, std::string& problem, std::string path)
      : value_(value), problem_(&problem), path_(std::move(path)) {}
  void complain(std::string_view expected) const;

  const boost::json::value* value_;  // null if absent
  std::string* problem_;
  std::string path_;
};

}  // namespace agbox
