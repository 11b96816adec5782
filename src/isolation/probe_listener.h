// SPDX-License-Identifier: Apache-2.0
// A listener on the host during a verification: a refused connection shows something only if it
// could have been accepted.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "model/network/ipv4.h"

namespace agbox {

// The addresses from which a sandbox connects. Not the interface: the kernel attributes connections
// of this host's own processes to the interface of the address that they connect to.
struct ProbePeers {
  std::vector<Ipv4Network> networks;      // of its bridge
  std::vector<Ipv4Address> of_this_host;  // the exceptions, which any local user can connect from

  bool contains(Ipv4Address address) const;
};

class ProbeListener {
 public:
  // On a port chosen by the kernel.
  static Result<ProbeListener> open(Ipv4Address address, ProbePeers peers);

  Ipv4Address address() const { return address_; }
  std::uint16_t port() const { return port_; }

  struct Seen {
    bool answers = false;      // accepted our own connection
    bool was_reached = false;  // by a peer
  };
  // Connects to it from here, and checks for connections of peers; those of other local processes,
  // however many, change nothing. Blocks while connecting to ourselves, which is instant unless
  // packets are dropped, and never longer than `limit` in total.
  Seen check(std::chrono::milliseconds limit = std::chrono::seconds(1));

 private:
  ProbeListener(UniqueFd socket, Ipv4Address address, std::uint16_t port, ProbePeers peers)
      : socket_(std::move(socket)), address_(address), port_(port), peers_(std::move(peers)) {}

  enum class Accepted { AllWaiting, APeer, NoMore };
  // Accepts the connections in the queue. Those that may be our own are added to `unidentified`.
  Accepted accept_waiting(std::vector<UniqueFd>& unidentified);

  UniqueFd socket_;
  Ipv4Address address_;
  std::uint16_t port_;
  ProbePeers peers_;
};

}  // namespace agbox
