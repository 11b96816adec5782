// SPDX-License-Identifier: Apache-2.0
#include "guest/memory_events.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"

namespace agbox::guest {
namespace {

// These files have a few lines.
std::string read_small(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text;
  const ssize_t got = file ? ::read(file.get(), text.data(), text.size()) : -1;
  return got <= 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(got));
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc()) return std::nullopt;
  return value;
}

// The value of the line "oom_kill 3".
std::optional<std::uint64_t> kills_in(std::string_view text) {
  constexpr std::string_view kKey = "oom_kill ";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(kKey)) return number(line.substr(kKey.size()));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

// Of cgroup v2, or of v1, where each controller has its own directory.
std::optional<std::uint64_t> count_kills(const std::string& group) {
  if (const auto kills = kills_in(read_small(group + "/memory.events"))) return kills;
  return kills_in(read_small(group + "/memory/memory.oom_control"));
}

// nullopt if there is none: v2 has "max", v1 a huge number.
std::optional<std::uint64_t> limit_of(const std::string& group) {
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;
  auto limit = number(read_small(group + "/memory.max"));
  if (!limit) limit = number(read_small(group + "/memory/memory.limit_in_bytes"));
  if (!limit || *limit >= kNoLimit) return std::nullopt;
  return limit;
}

}  // namespace

MemoryEvents::MemoryEvents(std::string control_group)
    : control_group_(std::move(control_group)), kills_before_(count_kills(control_group_)) {}

std::string MemoryEvents::explain() const {
  const auto kills = count_kills(control_group_);
  if (!kills || !kills_before_ || *kills <= *kills_before_) return {};
  const std::uint64_t count = *kills - *kills_before_;
  const auto limit = limit_of(control_group_);
  return "out of memory: while it ran, the kernel killed " + std::to_string(count) +
         (count == 1 ? " process" : " processes") + " of the sandbox, " +
         (limit ? "whose memory limit is " + std::to_string(*limit >> 20U) + " MiB"
                : "which has no memory limit of its own");
}

}  // namespace agbox::guest
