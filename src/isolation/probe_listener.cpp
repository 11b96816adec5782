// SPDX-License-Identifier: Apache-2.0
#include "isolation/probe_listener.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/uuid.h"

namespace agbox {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

// Of connections that may be our own, because they come from this host and have sent nothing yet.
// Ours sends before it is accepted, so it is not among the oldest that make room for others.
constexpr std::size_t kMostUnidentified = 64;

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

// Waits for any of them.
bool becomes_ready(std::span<pollfd> waiting, Deadline deadline) {
  using std::chrono::milliseconds;
  int ready = 0;
  do {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    ready = ::poll(waiting.data(), waiting.size(),
                   static_cast<int>(std::max(left, milliseconds(0)).count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

pollfd interest_in(const UniqueFd& socket, short events) {
  return {.fd = socket.get(), .events = events, .revents = 0};
}

bool becomes_writable(const UniqueFd& socket, Deadline deadline) {
  pollfd waiting = interest_in(socket, POLLOUT);
  return becomes_ready(std::span(&waiting, 1), deadline);
}

bool becomes_readable(const UniqueFd& listener, const std::vector<UniqueFd>& connections,
                      Deadline deadline) {
  std::vector<pollfd> waiting{interest_in(listener, POLLIN)};
  for (const UniqueFd& connection : connections) waiting.push_back(interest_in(connection, POLLIN));
  return becomes_ready(waiting, deadline);
}

// Whether one of them has received the token. Those that received anything else are closed.
bool identify(std::vector<UniqueFd>& connections, std::string_view token) {
  bool is_found = false;
  std::erase_if(connections, [&](const UniqueFd& connection) {
    std::array<char, 64> received{};
    const ssize_t size = ::recv(connection.get(), received.data(), received.size(), MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    is_found = is_found || (size > 0 && std::string_view(received.data(),
                                                         static_cast<std::size_t>(size)) == token);
    return true;
  });
  return is_found;
}

std::unexpected<Error> cannot_listen(Ipv4Address address, int problem) {
  return std::unexpected(
      errno_error("isolation verification: listen on " + address.text(), problem));
}

}  // namespace

bool ProbePeers::contains(Ipv4Address address) const {
  const bool is_inside = std::ranges::any_of(networks, [&](const Ipv4Network& network) {
    return network.address <= address && address <= network.last();
  });
  return is_inside && std::ranges::find(of_this_host, address) == of_this_host.end();
}

Result<ProbeListener> ProbeListener::open(Ipv4Address address, ProbePeers peers) {
  UniqueFd socket = tcp_socket();
  sockaddr_in place = socket_address(address, 0);
  if (!socket || ::bind(socket.get(), generic(place), sizeof place) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return cannot_listen(address, errno);
  }
  const std::uint16_t port = own_port(socket);
  if (port == 0) return cannot_listen(address, errno);
  return ProbeListener(std::move(socket), address, port, std::move(peers));
}

ProbeListener::Seen ProbeListener::check(std::chrono::milliseconds limit) {
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  std::vector<UniqueFd> unidentified;
  // First, so that a full queue does not reject our own connection.
  const Accepted earlier = accept_waiting(unidentified);
  if (earlier != Accepted::AllWaiting) return {.was_reached = earlier == Accepted::APeer};
  const UniqueFd own = tcp_socket();
  // Identified by its content: an engine's masquerading changes its source address.
  const std::string token = random_uuid();
  sockaddr_in place = socket_address(address_, port_);
  const bool begun =
      own && (::connect(own.get(), generic(place), sizeof place) == 0 || errno == EINPROGRESS);
  const bool is_sent = begun && becomes_writable(own, deadline) &&
                       ::send(own.get(), token.data(), token.size(), MSG_NOSIGNAL) > 0;
  // Connections are accepted in their order: once ours is, all that the probe made have been.
  do {
    const Accepted accepted = accept_waiting(unidentified);
    if (accepted != Accepted::AllWaiting) return {.was_reached = accepted == Accepted::APeer};
    if (identify(unidentified, token)) return {.answers = true};
  } while (is_sent && becomes_readable(socket_, unidentified, deadline));
  return {};
}

ProbeListener::Accepted ProbeListener::accept_waiting(std::vector<UniqueFd>& unidentified) {
  // Not until it is empty: other processes may fill it as fast as it is emptied.
  for (int i = 0; i < SOMAXCONN; ++i) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    UniqueFd connection(::accept4(socket_.get(), generic(peer), &size, SOCK_CLOEXEC));
    if (!connection && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!connection) return errno == EAGAIN ? Accepted::AllWaiting : Accepted::NoMore;
    if (peers_.contains({ntohl(peer.sin_addr.s_addr)})) return Accepted::APeer;
    if (unidentified.size() == kMostUnidentified) unidentified.erase(unidentified.begin());
    unidentified.push_back(std::move(connection));
  }
  return Accepted::AllWaiting;
}

}  // namespace agbox
