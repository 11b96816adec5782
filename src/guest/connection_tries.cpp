// SPDX-License-Identifier: Apache-2.0
#include "guest/connection_tries.h"

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

// The daemon tries one at a time; this only bounds what it could make us hold.
constexpr std::size_t kMaxTries = 16;

sockaddr_in address_of(const v1::TryConnection& order) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(order.address());
  address.sin_port = htons(static_cast<std::uint16_t>(order.port()));
  return address;
}

}  // namespace

void ConnectionTries::begin(const v1::TryConnection& order) {
  if (tries_.size() >= kMaxTries) return tell_unknown(order.id(), "too many tries at once");
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return tell(order.id(), errno);
  const sockaddr_in address = address_of(order);
  // sockaddr is the C interface's base class.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::connect(socket.get(), generic, sizeof address) == 0) return tell(order.id(), 0);
  if (errno != EINPROGRESS) return tell(order.id(), errno);
  tries_.push_back({.id = order.id(),
                    .socket = std::move(socket),
                    .deadline = steady_clock::now() + std::chrono::milliseconds(order.limit_ms())});
}

void ConnectionTries::collect(Watches& watches) {
  for (const Try& one : tries_) {
    watches.add(one.socket.get(), POLLOUT, [this, id = one.id] { on_ready(id); });
    watches.wake(one.deadline);
  }
}

void ConnectionTries::on_ready(std::uint64_t id) {
  const auto one = std::ranges::find(tries_, id, &Try::id);
  if (one == tries_.end()) return;
  int problem = 0;
  socklen_t size = sizeof problem;
  if (::getsockopt(one->socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size) != 0) problem = errno;
  tries_.erase(one);
  tell(id, problem);
}

void ConnectionTries::end_overdue() {
  const auto is_overdue = [now = steady_clock::now()](const Try& one) {
    return now >= one.deadline;
  };
  std::vector<std::uint64_t> overdue;
  for (const Try& one : tries_) {
    if (is_overdue(one)) overdue.push_back(one.id);
  }
  std::erase_if(tries_, is_overdue);
  for (const std::uint64_t id : overdue) tell_unknown(id, "no answer came in time");
}

void ConnectionTries::tell(std::uint64_t id, int problem) {
  if (problem != 0 && problem != ECONNREFUSED) return tell_unknown(id, std::strerror(problem));
  v1::ConnectionTried tried;
  tried.set_id(id);
  tried.set_outcome(problem == 0 ? v1::ConnectionTried::OUTCOME_CONNECTED
                                 : v1::ConnectionTried::OUTCOME_REFUSED);
  tell_(tried);
}

void ConnectionTries::tell_unknown(std::uint64_t id, std::string detail) {
  v1::ConnectionTried tried;
  tried.set_id(id);
  tried.set_outcome(v1::ConnectionTried::OUTCOME_UNKNOWN);
  tried.set_detail(std::move(detail));
  tell_(tried);
}

}  // namespace agbox::guest
