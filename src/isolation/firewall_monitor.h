// SPDX-License-Identifier: Apache-2.0
// Keeps the firewall in place while the daemon runs: changes to our tables are undone, and the sets
// follow changes of routes, addresses and links. Driven by netlink events, without polling. What
// the kernel refuses is retried until it succeeds; until then no verification begins.
//
// Everything runs on one executor. Kernel calls take about a millisecond each, so it should not be
// a latency-sensitive thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/retry_timer.h"
#include "async/task_group.h"
#include "base/log.h"
#include "base/result.h"
#include "isolation/firewall.h"
#include "isolation/host_isolation.h"
#include "isolation/netlink/netlink_subscription.h"
#include "isolation/netlink/routing.h"
#include "isolation/probe_listener.h"

namespace agbox {

namespace asio = boost::asio;

class FirewallMonitor {
 public:
  using OnHealth = std::function<void(const IsolationHealth&)>;

  // Subscribes before it loads the rules, so that no change is missed. Fails if the rules are not
  // in place at the end.
  static Result<std::unique_ptr<FirewallMonitor>> start(asio::any_io_executor executor,
                                                        FirewallOptions options,
                                                        std::vector<Ipv4Address> resolvers,
                                                        OnHealth on_health, Logger log);

  // The rules stay as they are.
  asio::awaitable<void> stop();

  // The sandboxes' resolvers have changed.
  Result<> set_resolvers(std::vector<Ipv4Address> resolvers);

  // A verification in progress: the rules are in the kernel and match this bridge, and a listener
  // on the host waits that the sandbox behind the bridge must not reach.
  struct Verification {
    std::string bridge_name;
    ProbeListener listener;
    Firewall::CountMark mark;
    // Durations: inspecting the bridge, reading the tables, opening the listener and the count,
    // then evaluating both.
    std::chrono::microseconds bridge{};
    std::chrono::microseconds tables{};
    std::chrono::microseconds listening{};
    std::chrono::microseconds verdict{};
  };
  Result<std::unique_ptr<Verification>> begin_verification(const std::string& bridge_name);
  // Evaluates the sandbox's attempt. Every verification that was begun must be ended.
  Result<> end_verification(Verification& verification, const Result<ProbeReport>& inside);

  // Undoes pending changes by others and retries what was refused; returns how often tables were
  // replaced since the start.
  unsigned restore();

  // The current state of our tables and other chains, after restore(); fails if something is still
  // refused.
  Result<FirewallFacts> inspect();

  // For a daemon that ends without sandboxes; after stop().
  Result<> remove_rules() { return firewall_.remove(); }

 private:
  // The process that changed the firewall, according to the kernel.
  struct Writer {
    std::uint32_t pid = 0;
    std::string program;
  };

  FirewallMonitor(asio::any_io_executor executor, FirewallOptions options, Firewall firewall,
                  RoutingReader routing, NetlinkSubscription table_events,
                  NetlinkSubscription route_events, OnHealth on_health, Logger log);

  asio::awaitable<void> watch_tables();
  asio::awaitable<void> watch_routes();
  // True if our tables may have changed.
  bool take_table_events();
  // True at the end of a transaction that concerns our tables. Only the end names the process, and
  // it may arrive separately.
  bool take_table_event(const nlmsghdr* event);
  void repair();
  void report_repair(const std::string& difference);
  // Repairs if a change is pending or the last repair was refused.
  void repair_if_needed();
  Result<> follow_routes();
  // Everything pending; fails if any part is refused.
  Result<> repair_all();
  asio::awaitable<void> repair_after(asio::awaitable<bool> delay);
  Result<> check() const;
  Result<HostNetwork> read_host_network();
  asio::awaitable<void> delay(std::chrono::milliseconds duration);
  // What the kernel refused and is retried; empty: resolved.
  void set_problem(std::string& which, std::string problem);

  asio::any_io_executor executor_;
  FirewallOptions options_;
  std::string our_bridges_;
  Firewall firewall_;
  std::vector<nft::TableName> our_tables_;
  RoutingReader routing_;
  NetlinkSubscription table_events_;
  NetlinkSubscription route_events_;
  OnHealth on_health_;
  Logger log_;
  std::vector<Ipv4Address> resolvers_;
  bool transaction_concerns_us_ = false;
  Writer last_writer_;
  std::string table_problem_;
  std::string route_problem_;
  IsolationHealth health_;
  RetryTimer retry_timer_;
  TaskGroup tasks_;
};

}  // namespace agbox
