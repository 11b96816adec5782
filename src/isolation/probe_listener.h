// SPDX-License-Identifier: Apache-2.0
// Somebody on the host who would answer a sandbox, for the moment of a proof: that a connection was
// refused shows something only where there was somebody to reach.
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
  // On a port that the kernel chooses.
  static Result<ProbeListener> open(Ipv4Address address);

  Ipv4Address address() const { return address_; }
  std::uint16_t port() const { return port_; }

  struct Seen {
    bool answers = false;      // a connection of our own
    bool was_reached = false;  // by anybody else
  };
  // Tries it from here, and checks who else came. Blocks while the kernel connects us to ourselves,
  // which takes no time unless packets are dropped, and never longer than `limit` in all.
  Seen look(std::chrono::milliseconds limit = std::chrono::seconds(1));

 private:
  ProbeListener(UniqueFd socket, Ipv4Address address, std::uint16_t port)
      : socket_(std::move(socket)), address_(address), port_(port) {}

  UniqueFd socket_;
  Ipv4Address address_;
  std::uint16_t port_;
};

}  // namespace agbox
