// SPDX-License-Identifier: Apache-2.0
#include "guestlink/peer.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>

#include "base/unique_fd.h"

namespace agbox::guestlink {

bool PeerProcess::may_be(const PeerProcess& other) const {
  if (pid == 0 || other.pid == 0) return true;
  if (pid != other.pid) return false;
  return start_time == 0 || other.start_time == 0 || start_time == other.start_time;
}

std::uint64_t start_time_in_stat(std::string_view stat) {
  // pid (name) S parent ...: the name is the process's own choice; the time is the 20th behind it.
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return 0;
  stat.remove_prefix(name_end + 1);
  for (int field = 0; field < 20; ++field) {
    const std::size_t space = stat.find(' ');
    if (space == std::string_view::npos) return 0;
    stat.remove_prefix(space + 1);
  }
  std::uint64_t ticks = 0;
  const auto [end, problem] = std::from_chars(stat.data(), stat.data() + stat.size(), ticks);
  return problem == std::errc() ? ticks : 0;
}

std::uint64_t start_time_of(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/stat";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  std::array<char, 1024> text;
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  return got <= 0 ? 0 : start_time_in_stat({text.data(), static_cast<std::size_t>(got)});
}

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  Peer peer{credentials.uid, {credentials.pid, 0}};
  if (peer.process.pid != 0) peer.process.start_time = start_time_of(peer.process.pid);
  return peer;
}

}  // namespace agbox::guestlink
