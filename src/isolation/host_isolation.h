// SPDX-License-Identifier: Apache-2.0
// Isolates sandboxes from the host, the local network and each other, as seen from the control
// thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "isolation/firewall_facts.h"
#include "model/network/ipv4.h"
#include "model/network/isolation_health.h"
#include "model/network/network_probe.h"

namespace agbox {

namespace asio = boost::asio;

class HostIsolation {
 public:
  using Probe = std::function<asio::awaitable<Result<ProbeReport>>(ProbeTarget)>;

  virtual ~HostIsolation() = default;

  // Puts it in place; call before any sandbox network is created. From then on `on_change` is
  // called whenever a change by others was undone, and when that begins or ceases to fail.
  virtual asio::awaitable<Result<>> start(std::vector<Ipv4Address> resolvers,
                                          std::function<void()> on_change) = 0;
  // The resolvers that sandboxes may reach, wherever they are.
  virtual asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> resolvers) = 0;
  // Stays in place, except with `remove_rules`, which means that no sandbox is known: then it is
  // removed if no sandbox bridge is left either. No callback follows.
  virtual asio::awaitable<Result<>> stop(bool remove_rules) = 0;

  // Verifies that the sandbox with this bridge is isolated now; required before any user code runs.
  // `probe` attempts a connection from inside the sandbox.
  virtual asio::awaitable<Result<>> verify(std::string bridge_name, Probe probe) = 0;

  // The current state of the rules, and rules of others that interfere; for diagnosis.
  virtual asio::awaitable<Result<FirewallFacts>> inspect() = 0;

  virtual IsolationHealth health() const = 0;
};

}  // namespace agbox
