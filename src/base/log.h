// SPDX-License-Identifier: Apache-2.0
// JSON lines on stderr, one object per line, in the order time, level, msg, the logger's own
// fields, the fields of the line. A Logger is a value: whoever works on a sandbox or an exec
// carries one that knows its ids, so no line can forget them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace agbox {

enum class LogLevel { Debug, Info, Warn, Error };

// debug, info, warn or error, in any case of letters.
std::optional<LogLevel> parse_log_level(std::string_view text);
std::string_view log_level_name(LogLevel level);

// Lines below this level are dropped, for every Logger of the process.
void set_log_level(LogLevel level);
// Where lines go; stderr (2) at first. For tests.
void set_log_fd(int fd);

// One "key": value of a line.
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

  // The same logger with one more field on every line, for example with({"sandbox_id", id}).
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

// The text as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_quote(std::string_view text);

}  // namespace agbox
