// SPDX-License-Identifier: Apache-2.0
#include "guest/process_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "base/unique_fd.h"

namespace agbox::guest {

std::optional<pid_t> parent_in_stat(std::string_view stat) {
  // pid (name) S parent ...
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos || stat.size() < name_end + 5) return std::nullopt;
  const std::string_view rest = stat.substr(name_end + 4);
  pid_t parent = 0;
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  if (problem != std::errc() || parent < 0) return std::nullopt;
  return parent;
}

std::optional<pid_t> parent_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return std::nullopt;
  std::array<char, 512> text;  // the parent stands within the first 100 bytes
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got <= 0) return std::nullopt;
  return parent_in_stat({text.data(), static_cast<std::size_t>(got)});
}

bool descends(pid_t pid, pid_t ancestor, const std::function<std::optional<pid_t>(pid_t)>& parent) {
  // Parents change while we look, so a circle is thinkable; no tree is this deep.
  for (int step = 0; step < 4096 && pid > 1; ++step) {
    if (pid == ancestor) return true;
    const auto next = parent(pid);
    if (!next) return false;
    pid = *next;
  }
  return false;
}

}  // namespace agbox::guest
