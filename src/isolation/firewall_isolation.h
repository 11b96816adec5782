// SPDX-License-Identifier: Apache-2.0
// The isolation that the daemon relies on: the firewall with its monitor, on a thread of its own,
// as the control thread sees it.
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
  // Everything public is for the thread of `home`; the firewall's work is done on `worker`, which
  // ends after stop().
  FirewallIsolation(boost::asio::any_io_executor home, boost::asio::any_io_executor worker,
                    FirewallOptions options, Logger log);
  ~FirewallIsolation() override;

  // Loads the rules and reads them back.
  boost::asio::awaitable<Result<>> start(std::vector<Ipv4Address> resolvers,
                                         std::function<void()> on_repair) override;
  boost::asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> resolvers) override;
  boost::asio::awaitable<Result<>> stop(bool remove_rules) override;

  // That the rules are in the kernel and are for this bridge, and that they refuse a connection
  // from the sandbox to a listener of ours. What a stranger changes meanwhile is put back, and the
  // proof begun anew.
  boost::asio::awaitable<Result<>> prove(std::string bridge_name, Probe probe) override;
  boost::asio::awaitable<Result<FirewallFacts>> look() override;
  IsolationHealth health() const override;

 private:
  // What of this object a report may find gone when it arrives.
  struct Reported {
    IsolationHealth health;
    std::function<void()> on_repair;
  };
  boost::asio::awaitable<Result<>> start_there(std::vector<Ipv4Address> resolvers);
  boost::asio::awaitable<Result<>> stop_there(bool remove_rules);
  boost::asio::awaitable<Result<>> prove_once(std::string bridge_name, const Probe& probe);
  boost::asio::awaitable<Result<std::unique_ptr<FirewallMonitor::Proof>>> begin_proof_there(
      std::string bridge_name);
  boost::asio::awaitable<Result<>> end_proof_there(FirewallMonitor::Proof& proof,
                                                   const Result<ProbeReport>& inside);
  boost::asio::awaitable<unsigned> put_back_there();
  boost::asio::awaitable<Result<FirewallFacts>> look_there();
  boost::asio::awaitable<Result<>> set_resolvers_there(std::vector<Ipv4Address> resolvers);

  std::string table_name() const { return firewall_table_name(options_.instance_id); }

  boost::asio::any_io_executor home_;
  boost::asio::any_io_executor worker_;
  FirewallOptions options_;
  Logger log_;
  bool started_ = false;
  // Of the home thread. A report may be on its way when this object goes, so it knows it weakly.
  std::shared_ptr<Reported> reported_ = std::make_shared<Reported>();
  std::unique_ptr<FirewallMonitor> monitor_;  // of the worker thread
};

}  // namespace agbox
