// SPDX-License-Identifier: Apache-2.0
#include "base/process_stat.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "base/unique_fd.h"

namespace agbox {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view take_word(std::string_view& text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  text.remove_prefix(std::min(space + 1, text.size()));
  return word;
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  // pid (name) state parent group session ... start, the 20th after the name. The process chooses
  // its name, which may contain parentheses and newlines.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || text.size() < name_end + 2) return std::nullopt;
  const auto pid = number_in<pid_t>(text.substr(0, std::min(text.find(' '), text.size())));
  text.remove_prefix(name_end + 2);
  std::array<std::string_view, 20> words;
  for (std::string_view& word : words) word = take_word(text);
  const auto parent = number_in<pid_t>(words[1]);
  const auto session = number_in<pid_t>(words[3]);
  const auto start = number_in<std::uint64_t>(words[19]);
  if (!pid || !parent || !session || !start) return std::nullopt;
  return ProcessStat{*pid, *parent, *session, *start};
}

std::optional<ProcessStat> read_process_stat(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  if (got <= 0) return std::nullopt;
  return parse_process_stat({text.data(), static_cast<std::size_t>(got)});
}

}  // namespace agbox
