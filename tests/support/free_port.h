// SPDX-License-Identifier: Apache-2.0
// A port for a test, that stays free when the test has closed its socket: it is below those that
// the kernel chooses for the sockets of other programs.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <system_error>

namespace agbox {

inline in_port_t& port_of(sockaddr_in& address) {
  return address.sin_port;
}
inline in_port_t& port_of(sockaddr_in6& address) {
  return address.sin6_port;
}

// Binds the socket to this address, with a port that no one has; returns its number.
template <class Address>
std::uint16_t bind_free_port(int socket, Address address) {
  constexpr int kAttempts = 100;
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> ports(20000, 32000);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint16_t port = ports(random);
    port_of(address) = htons(port);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);  // as the API has it
    if (::bind(socket, generic, sizeof address) == 0) return port;
    if (errno != EADDRINUSE) break;
  }
  throw std::system_error(errno, std::generic_category(), "bind");
}

}  // namespace agbox
