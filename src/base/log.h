// SPDX-License-Identifier: Apache-2.0
// JSON lines on stderr, one object per line: time, level, msg, the logger's fields, the line's
// fields. A Logger is a value: code that works on a sandbox or an exec has one that carries its
// IDs, so no line can omit them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace agbox {

enum class LogLevel { Debug, Info, Warn, Error };

// debug, info, warn or error, case-insensitive.
std::optional<LogLevel> parse_log_level(std::string_view text);
std::string_view log_level_name(LogLevel level);

// Minimum level for every Logger of the process.
void set_log_level(LogLevel level);
// Default: stderr (2). For tests.
void set_log_fd(int fd);

// One "key": value pair of a line.
class LogField {
 public:
  LogField(std::string_view key, std::string_view value);
  LogField(std::string_view key, const char* value) : LogField(key, std::string_view(value)) {}
  LogField(std::string_view key, const std::string& value)
      : LogField(key, std::string_view(value)) {}
  LogField(std::string_view key, bool value);
  template <class Integer>
    requires(std::is_integral_v<Integer> && !std::is_same_v<Integer, bool>)
  LogField(std::string_view key, Integer value) : LogField(key, std::to_string(value), Raw{}) {}

  // ,"key":value
  const std::string& json() const { return json_; }

 private:
  struct Raw {};
  LogField(std::string_view key, const std::string& value, Raw);
  std::string json_;
};

class Logger {
 public:
  Logger() = default;

  // Returns a copy with one more field, e.g. with({"sandbox_id", id}).
  Logger with(const LogField& field) const;

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void warn(std::string_view message, std::initializer_list<LogField> fields = {}) const;
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) const;

 private:
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) const;
  std::string fields_;
};

// Returns the text as a quoted JSON string; invalid UTF-8 becomes U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace agbox
