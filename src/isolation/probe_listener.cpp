// SPDX-License-Identifier: Apache-2.0
#include "isolation/probe_listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "base/uuid.h"

namespace agbox {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

sockaddr_in socket_address(Ipv4Address address, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_addr.s_addr = htonl(address.value);
  made.sin_port = htons(port);
  return made;
}

// sockaddr is the base class of the C interface.
sockaddr* generic(sockaddr_in& address) {
  return reinterpret_cast<sockaddr*>(&address);
}

UniqueFd tcp_socket() {
  return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// 0 on failure.
std::uint16_t own_port(const UniqueFd& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), generic(address), &size) != 0) return 0;
  return ntohs(address.sin_port);
}

bool becomes_ready(const UniqueFd& socket, short events, Deadline deadline) {
  using std::chrono::milliseconds;
  pollfd waiting{.fd = socket.get(), .events = events, .revents = 0};
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    ready = ::poll(&waiting, 1, static_cast<int>(std::max(left, milliseconds(0)).count()));
  } while (ready < 0 && errno == EINTR);
  return ready == 1;
}

bool receives(const UniqueFd& connection, std::string_view expected, Deadline deadline) {
  std::array<char, 64> received{};
  if (!becomes_ready(connection, POLLIN, deadline)) return false;
  const ssize_t size = ::recv(connection.get(), received.data(), received.size(), MSG_DONTWAIT);
  return size > 0 && std::string_view(received.data(), static_cast<std::size_t>(size)) == expected;
}

std::unexpected<Error> cannot_listen(Ipv4Address address, int problem) {
  return std::unexpected(
      errno_error("isolation verification: listen on " + address.text(), problem));
}

}  // namespace

Result<ProbeListener> ProbeListener::open(Ipv4Address address) {
  UniqueFd socket = tcp_socket();
  sockaddr_in place = socket_address(address, 0);
  if (!socket || ::bind(socket.get(), generic(place), sizeof place) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return cannot_listen(address, errno);
  }
  const std::uint16_t port = own_port(socket);
  if (port == 0) return cannot_listen(address, errno);
  return ProbeListener(std::move(socket), address, port);
}

ProbeListener::Seen ProbeListener::check(std::chrono::milliseconds limit) {
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  const UniqueFd own = tcp_socket();
  // Identified by its content: an engine's masquerading changes its source address.
  const std::string token = random_uuid();
  sockaddr_in place = socket_address(address_, port_);
  const bool begun =
      own && (::connect(own.get(), generic(place), sizeof place) == 0 || errno == EINPROGRESS);
  const bool is_sent = begun && becomes_ready(own, POLLOUT, deadline) &&
                       ::send(own.get(), token.data(), token.size(), MSG_NOSIGNAL) > 0;
  if (is_sent) static_cast<void>(becomes_ready(socket_, POLLIN, deadline));
  Seen seen;
  // One other connection is enough; many silent ones would each delay us.
  while (!seen.was_reached) {
    const UniqueFd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!accepted) return seen;
    (receives(accepted, token, deadline) ? seen.answers : seen.was_reached) = true;
  }
  return seen;
}

}  // namespace agbox
