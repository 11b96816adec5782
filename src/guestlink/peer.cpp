// SPDX-License-Identifier: Apache-2.0
#include "guestlink/peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/process_stat.h"

namespace agbox::guestlink {
namespace {

// From ours inwards.
constexpr std::string_view kPidsOfNamespaces = "NSpid:";

}  // namespace

std::optional<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return Peer{credentials.uid, {credentials.pid, 0}};
}

std::uint64_t start_time_of(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat ? stat->start_ticks : 0;
}

std::uint64_t start_time_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  constexpr std::uint64_t kNanoseconds = 1'000'000'000;
  const auto ticks = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return static_cast<std::uint64_t>(now.tv_sec) * ticks +
         static_cast<std::uint64_t>(now.tv_nsec) * ticks / kNanoseconds;
}

bool may_have_pid_outside(pid_t process, std::int64_t pid) {
  if (process == 0) return true;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with(kPidsOfNamespaces)) continue;
    std::istringstream rest(line.substr(kPidsOfNamespaces.size()));
    std::vector<std::int64_t> pids;
    for (std::int64_t one = 0; rest >> one;) pids.push_back(one);
    // The last is that of its own namespace, where it can create processes until it has any pid.
    if (pids.size() > 1) pids.pop_back();
    return std::ranges::find(pids, pid) != pids.end();
  }
  return false;  // it has ended, and others may have its connection
}

PeerProcess if_alive(const PeerProcess& process) {
  const bool is_alive = process.pid != 0 && process.start_time != 0 &&
                        start_time_of(process.pid) == process.start_time;
  return is_alive ? process : PeerProcess{};
}

}  // namespace agbox::guestlink
