// SPDX-License-Identifier: Apache-2.0
// What keeps a sandbox away from the host, the local network and other sandboxes, as the control
// thread sees it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/firewall_facts.h"
#include "model/network/ipv4.h"
#include "model/network/network_probe.h"

namespace agbox {

struct IsolationHealth {
  // One sentence while something is wrong; empty where all of it is in place.
  std::string shortcoming{};
  // How often a stranger's change was undone since the start, and the last time in one sentence.
  std::uint64_t repairs = 0;
  std::string last_repair{};
};

class HostIsolation {
 public:
  using Probe = std::function<boost::asio::awaitable<Result<ProbeReport>>(ProbeTarget)>;

  virtual ~HostIsolation() = default;

  // Puts it in place; before any network of a sandbox is made. From then on `on_repair` is called
  // whenever something was put back that others had changed.
  virtual boost::asio::awaitable<Result<>> start(std::vector<Ipv4Address> resolvers,
                                                 std::function<void()> on_repair) = 0;
  // Those that sandboxes may ask, wherever they are.
  virtual boost::asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> resolvers) = 0;
  // It stays in place, unless it is of no use to anybody any more: `remove_rules` says that no
  // sandbox is known, and it is removed where no bridge of one is left either. Nothing is called
  // afterwards.
  virtual boost::asio::awaitable<Result<>> stop(bool remove_rules) = 0;

  // Says whether, for the sandbox with this bridge and now, it holds. Nothing of a caller runs
  // before. `probe` tries a connection from inside of this sandbox.
  virtual boost::asio::awaitable<Result<>> prove(std::string bridge_name, Probe probe) = 0;

  // What is there of it now, and what of others is in its way: for people.
  virtual boost::asio::awaitable<Result<FirewallFacts>> look() = 0;

  virtual IsolationHealth health() const = 0;
};

}  // namespace agbox
