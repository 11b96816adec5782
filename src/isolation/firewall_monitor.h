// SPDX-License-Identifier: Apache-2.0
// Keeps the firewall true while the daemon lives: the kernel tells of every change to our tables,
// and they are put back; it tells of routes, addresses and links, and the sets follow them. Nothing
// is looked at without a reason. What the kernel refuses is tried again until it is done, and no
// proof begins meanwhile.
//
// All of it runs on one executor. Calls to the kernel take about a millisecond each, so that
// executor's thread should not be one that others wait for.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/retry_pause.h"
#include "async/task_group.h"
#include "base/log.h"
#include "base/result.h"
#include "isolation/firewall.h"
#include "isolation/host_isolation.h"
#include "isolation/netlink/netlink_subscription.h"
#include "isolation/netlink/routing.h"
#include "isolation/probe_listener.h"

namespace agbox {

class FirewallMonitor {
 public:
  using OnHealth = std::function<void(const IsolationHealth&)>;

  // Listens first, then loads the rules: nothing that happens in between is missed. Fails where the
  // rules are not in place at the end.
  static Result<std::unique_ptr<FirewallMonitor>> start(boost::asio::any_io_executor executor,
                                                        FirewallOptions options,
                                                        std::vector<Ipv4Address> resolvers,
                                                        OnHealth on_health, Logger log);

  // The rules stay as they are.
  boost::asio::awaitable<void> stop();

  // The resolvers that sandboxes use have changed.
  Result<> set_resolvers(std::vector<Ipv4Address> resolvers);

  // That at this moment the rules are in the kernel and are for this bridge; and somebody to reach
  // on the host, whom the sandbox behind the bridge must not reach.
  struct Proof {
    std::string bridge_name;
    ProbeListener listener;
    Firewall::CountMark mark;
    // What its parts took: the look at the bridge, the tables read back, the listener and the count
    // begun; then both looked at.
    std::chrono::microseconds bridge{};
    std::chrono::microseconds tables{};
    std::chrono::microseconds listening{};
    std::chrono::microseconds verdict{};
  };
  Result<Proof> begin_proof(const std::string& bridge_name);
  // What came of the sandbox's try. Whoever begins a proof ends it.
  Result<> end_proof(Proof& proof, const Result<ProbeReport>& inside);

  // Puts back what strangers have changed and tries again what was refused, where there is
  // anything; how often tables were put in place of others since the start.
  unsigned put_back();

  // What is there now, ours and others', after the same; fails with what is refused still.
  Result<FirewallFacts> look();

  // For a daemon that ends and has no sandbox left; after stop().
  Result<> remove_rules() { return firewall_.remove(); }

 private:
  // Who changed the firewall, as the kernel tells it.
  struct Stranger {
    std::uint32_t pid = 0;
    std::string program;
  };

  FirewallMonitor(boost::asio::any_io_executor executor, FirewallOptions options, Firewall firewall,
                  RoutingReader routing, NetlinkSubscription table_events,
                  NetlinkSubscription route_events, OnHealth on_health, Logger log);

  boost::asio::awaitable<void> watch_tables();
  boost::asio::awaitable<void> watch_routes();
  // Whether something may have happened to our tables.
  bool take_table_events();
  // Whether it ends a transaction about our tables. Only the end says whose it was, and the kernel
  // may tell the rest of it a moment earlier.
  bool take_table_event(const nlmsghdr* event);
  void repair();
  // Repairs where something may have happened or the last repair was refused.
  void mend_tables();
  Result<> follow_routes();
  // All that there is to do; fails where something of it is refused.
  Result<> mend();
  boost::asio::awaitable<void> mend_after(boost::asio::awaitable<bool> pause);
  Result<> check() const;
  Result<HostNetwork> look_at_host();
  boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);
  // What the kernel refused, which is tried again; empty: it is over.
  void set_problem(std::string& which, std::string problem);

  boost::asio::any_io_executor executor_;
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
  Stranger stranger_;
  std::string table_problem_;
  std::string route_problem_;
  IsolationHealth health_;
  RetryPause retry_pause_;
  TaskGroup tasks_;
};

}  // namespace agbox
