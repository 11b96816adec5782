// SPDX-License-Identifier: Apache-2.0
// The isolation used by the daemon: the firewall and its monitor, which run on a thread of their
// own, as seen from the control thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "isolation/firewall_monitor.h"
#include "isolation/host_isolation.h"
#include "isolation/nft/ruleset.h"

namespace agbox {

class FirewallIsolation final : public HostIsolation {
 public:
  // All public methods run on the thread of `home`; the firewall's work runs on `worker`, which
  // must outlive stop().
  FirewallIsolation(asio::any_io_executor home, asio::any_io_executor worker,
                    FirewallOptions options, Logger log);
  ~FirewallIsolation() override;

  // Loads the rules and reads them back.
  asio::awaitable<Result<>> start(std::vector<Ipv4Address> resolvers,
                                  std::function<void()> on_change) override;
  asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> resolvers) override;
  asio::awaitable<Result<>> stop(bool remove_rules) override;

  // Verifies that the rules are in the kernel and match this bridge, and that they refuse a
  // connection from the sandbox to a listener of ours. Changes by another process are undone, and
  // the verification repeated.
  asio::awaitable<Result<>> verify(std::string bridge_name, Probe probe) override;
  asio::awaitable<Result<FirewallFacts>> inspect() override;
  IsolationHealth health() const override;

 private:
  // State that a report in flight may outlive.
  struct Reported {
    IsolationHealth health;
    std::function<void()> on_change;
  };
  // The wait cannot be cancelled; fails if the firewall is not loaded.
  template <class Work>
  auto on_worker(Work work);
  Result<> start_on_worker(std::vector<Ipv4Address> resolvers);
  asio::awaitable<Result<>> stop_on_worker(bool remove_rules);
  asio::awaitable<Result<>> verify_once(std::string bridge_name, const Probe& probe);
  asio::awaitable<unsigned> restore();

  std::string table_name() const { return firewall_table_name(options_.instance_id); }

  asio::any_io_executor home_;
  asio::any_io_executor worker_;
  FirewallOptions options_;
  Logger log_;
  bool started_ = false;
  // Belongs to the home thread. Reports in flight hold it weakly.
  std::shared_ptr<Reported> reported_ = std::make_shared<Reported>();
  std::unique_ptr<FirewallMonitor> monitor_;  // belongs to the worker thread
};

}  // namespace agbox
