// SPDX-License-Identifier: Apache-2.0
#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "base/utf8.h"

namespace agbox {
namespace {

// In the order of LogLevel.
constexpr std::array<std::string_view, 4> kLevelNames = {"DEBUG", "INFO", "WARN", "ERROR"};

std::atomic<LogLevel> minimum_level{LogLevel::Info};
std::atomic<int> log_fd{STDERR_FILENO};

// 2026-01-02T03:04:05.678901Z
std::string timestamp() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm utc{};
  ::gmtime_r(&now.tv_sec, &utc);
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  const int more =
      std::snprintf(text.data() + length, text.size() - length, ".%06ldZ", now.tv_nsec / 1000);
  return {text.data(), length + static_cast<std::size_t>(more)};
}

}  // namespace

std::string json_quote(std::string_view text) {
  std::string out = "\"";
  const auto add_escaped = [&out](char code) {
    std::array<char, 8> escaped{};
    std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned char>(code));
    out += escaped.data();
  };
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      out += "\xEF\xBF\xBD";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      add_escaped(c);
    } else if (length == 2 && c == '\xC2' && static_cast<unsigned char>(text[1]) < 0xA0) {
      // A terminal that shows the line would take it as the beginning of an escape sequence.
      add_escaped(text[1]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out + '"';
}

std::optional<LogLevel> parse_log_level(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  const auto found = std::ranges::find(kLevelNames, upper);
  if (found == kLevelNames.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kLevelNames.begin());
}

std::string_view log_level_name(LogLevel level) {
  return kLevelNames.at(static_cast<std::size_t>(level));
}

void set_log_level(LogLevel level) {
  minimum_level = level;
}
void set_log_fd(int fd) {
  log_fd = fd;
}

LogField::LogField(std::string_view key, std::string_view value)
    : json_("," + json_quote(key) + ":" + json_quote(value)) {}
LogField::LogField(std::string_view key, bool value)
    : LogField(key, value ? "true" : "false", Raw{}) {}
LogField::LogField(std::string_view key, const std::string& value, Raw)
    : json_("," + json_quote(key) + ":" + value) {}

Logger Logger::with(const LogField& field) const {
  Logger more = *this;
  more.fields_ += field.json();
  return more;
}

void Logger::debug(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::Debug, message, fields);
}
void Logger::info(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::Info, message, fields);
}
void Logger::warn(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::Warn, message, fields);
}
void Logger::error(std::string_view message, std::initializer_list<LogField> fields) const {
  write(LogLevel::Error, message, fields);
}

void Logger::write(LogLevel level, std::string_view message,
                   std::initializer_list<LogField> fields) const {
  if (level < minimum_level.load(std::memory_order_relaxed)) return;
  std::string line = "{\"time\":\"" + timestamp() + "\",\"level\":\"" +
                     std::string(log_level_name(level)) + "\",\"msg\":" + json_quote(message) +
                     fields_;
  for (const LogField& field : fields) line += field.json();
  line += "}\n";
  // One write per line, so that lines of different threads do not mix. A failure cannot be
  // reported.
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(log_fd.load(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace agbox
