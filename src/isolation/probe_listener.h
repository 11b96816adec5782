// SPDX-License-Identifier: Apache-2.0
// A listener on the host during a verification: a refused connection shows something only if it
// could have been accepted.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/network/ipv4.h"

namespace agbox {

class ProbeListener {
 public:
  // On a port chosen by the kernel.
  static Result<ProbeListener> open(Ipv4Address address);

  Ipv4Address address() const { return address_; }
  std::uint16_t port() const { return port_; }

  struct Seen {
    bool answers = false;      // accepted our own connection
    bool was_reached = false;  // by any other connection
  };
  // Connects to it from here, and checks for other connections. Blocks while connecting to
  // ourselves, which is instant unless packets are dropped, and never longer than `limit` in total.
  Seen check(std::chrono::milliseconds limit = std::chrono::seconds(1));

 private:
  ProbeListener(UniqueFd socket, Ipv4Address address, std::uint16_t port)
      : socket_(std::move(socket)), address_(address), port_(port) {}

  UniqueFd socket_;
  Ipv4Address address_;
  std::uint16_t port_;
};

}  // namespace agbox
