// SPDX-License-Identifier: Apache-2.0
#include "guest/connection_probes.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace agbox::guest {
namespace {

using std::chrono::steady_clock;

// The daemon runs one at a time; this only bounds our memory.
constexpr std::size_t kMaxProbes = 16;

sockaddr_in address_of(const v1::TryConnection& request) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(request.address());
  address.sin_port = htons(static_cast<std::uint16_t>(request.port()));
  return address;
}

}  // namespace

void ConnectionProbes::begin(const v1::TryConnection& request) {
  if (probes_.size() >= kMaxProbes)
    return report_unknown(request.id(), "too many concurrent attempts");
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return report(request.id(), errno);
  const sockaddr_in address = address_of(request);
  // sockaddr is the base class of the C interface.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), generic, sizeof address) == 0) return report(request.id(), 0);
  if (errno != EINPROGRESS) return report(request.id(), errno);
  probes_.push_back(
      {.id = request.id(),
       .socket = std::move(socket),
       .deadline = steady_clock::now() + std::chrono::milliseconds(request.limit_ms())});
}

void ConnectionProbes::collect(Watches& watches) {
  for (const Probe& probe : probes_) {
    watches.add(probe.socket.get(), POLLOUT, [this, id = probe.id] { on_ready(id); });
    watches.wake(probe.deadline);
  }
}

void ConnectionProbes::on_ready(std::uint64_t id) {
  const auto probe = std::ranges::find(probes_, id, &Probe::id);
  if (probe == probes_.end()) return;
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(probe->socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0)
    problem = errno;
  probes_.erase(probe);
  report(id, problem);
}

void ConnectionProbes::end_overdue() {
  const auto is_overdue = [now = steady_clock::now()](const Probe& probe) {
    return now >= probe.deadline;
  };
  std::vector<std::uint64_t> overdue;
  for (const Probe& probe : probes_) {
    if (is_overdue(probe)) overdue.push_back(probe.id);
  }
  std::erase_if(probes_, is_overdue);
  for (const std::uint64_t id : overdue) report_unknown(id, "timed out");
}

void ConnectionProbes::report(std::uint64_t id, int problem) {
  if (problem != 0 && problem != ECONNREFUSED) return report_unknown(id, std::strerror(problem));
  v1::ConnectionTried tried;
  tried.set_id(id);
  tried.set_outcome(problem == 0 ? v1::ConnectionTried::OUTCOME_CONNECTED
                                 : v1::ConnectionTried::OUTCOME_REFUSED);
  report_(tried);
}

void ConnectionProbes::report_unknown(std::uint64_t id, std::string detail) {
  v1::ConnectionTried tried;
  tried.set_id(id);
  tried.set_outcome(v1::ConnectionTried::OUTCOME_UNKNOWN);
  tried.set_detail(std::move(detail));
  report_(tried);
}

}  // namespace agbox::guest
