// SPDX-License-Identifier: Apache-2.0
#include "isolation/firewall_monitor.h"

#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "async/await.h"
#include "isolation/firewall_faults.h"
#include "isolation/netlink/netlink_attributes.h"
#include "isolation/nft/netfilter.h"
#include "isolation/sandbox_verification.h"
#include "model/object_names.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using std::chrono::milliseconds;

// Limits the CPU time if another process removes our table again and again; the owned copy filters
// all the time.
constexpr milliseconds kAfterRepair{50};
// Links and addresses change in bursts when containers start.
constexpr milliseconds kAfterRouteChange{20};
// Between retries of what the kernel refused.
constexpr milliseconds kFirstRetryDelay{200};
constexpr milliseconds kLongestRetryDelay{10'000};

constexpr std::uint32_t group_bit(unsigned group) {
  return 1U << (group - 1);
}
constexpr std::uint32_t kTableGroups = group_bit(NFNLGRP_NFTABLES);
// Links too: a removed link takes its routes with it, without events for them.
constexpr std::uint32_t kRouteGroups = group_bit(RTNLGRP_LINK) | group_bit(RTNLGRP_IPV4_IFADDR) |
                                       group_bit(RTNLGRP_IPV4_ROUTE) | group_bit(RTNLGRP_IPV4_RULE);

std::unexpected<Error> cannot_listen(const std::string& to_what, const KernelError& error) {
  return fail(reason::kIsolationUnavailable, nft::explain_refusal("listen to " + to_what, error));
}

// Measures consecutive durations.
class Laps {
 public:
  std::chrono::microseconds next() {
    const auto before = std::exchange(last_, std::chrono::steady_clock::now());
    return std::chrono::duration_cast<std::chrono::microseconds>(last_ - before);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

// Tables, chains, rules, sets and elements all have their table's name in the first attribute.
std::string table_of_event(const nlmsghdr* event) {
  std::string name;
  for_each_attribute(event, sizeof(nfgenmsg), [&](const nlattr* attribute) {
    const bool is_name = mnl_attr_get_type(attribute) == NFTA_TABLE_NAME &&
                         mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) == 0;
    if (is_name) name = mnl_attr_get_str(attribute);
  });
  return name;
}

}  // namespace

FirewallMonitor::FirewallMonitor(asio::any_io_executor executor, FirewallOptions options,
                                 Firewall firewall, RoutingReader routing,
                                 NetlinkSubscription table_events, NetlinkSubscription route_events,
                                 OnHealth on_health, Logger log)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      our_bridges_(bridge_prefix(options_.instance_id)),
      firewall_(std::move(firewall)),
      our_tables_(firewall_.table_names()),
      routing_(std::move(routing)),
      table_events_(std::move(table_events)),
      route_events_(std::move(route_events)),
      on_health_(std::move(on_health)),
      log_(std::move(log)),
      retry_timer_(executor_, kFirstRetryDelay, kLongestRetryDelay),
      tasks_(executor_) {}

Result<std::unique_ptr<FirewallMonitor>> FirewallMonitor::start(asio::any_io_executor executor,
                                                                FirewallOptions options,
                                                                std::vector<Ipv4Address> resolvers,
                                                                OnHealth on_health, Logger log) {
  AGBOX_TRY(firewall, Firewall::open(options));
  AGBOX_TRY(routing, RoutingReader::open());
  auto table_events = NetlinkSubscription::open(executor, NETLINK_NETFILTER, kTableGroups);
  if (!table_events) return cannot_listen("changes of nftables", table_events.error());
  auto route_events = NetlinkSubscription::open(executor, NETLINK_ROUTE, kRouteGroups);
  if (!route_events) return cannot_listen("changes of routes", route_events.error());
  std::unique_ptr<FirewallMonitor> monitor(new FirewallMonitor(
      std::move(executor), std::move(options), std::move(firewall), std::move(routing),
      std::move(*table_events), std::move(*route_events), std::move(on_health), std::move(log)));
  monitor->resolvers_ = std::move(resolvers);
  AGBOX_TRY(host, monitor->read_host_network());
  AGBOX_TRY_VOID(monitor->firewall_.load(host));
  monitor->tasks_.spawn("watch the firewall", monitor->watch_tables());
  monitor->tasks_.spawn("watch the routes", monitor->watch_routes());
  return monitor;
}

asio::awaitable<void> FirewallMonitor::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

Result<> FirewallMonitor::set_resolvers(std::vector<Ipv4Address> resolvers) {
  resolvers_ = std::move(resolvers);
  return follow_routes();
}

Result<std::unique_ptr<FirewallMonitor::Verification>> FirewallMonitor::begin_verification(
    const std::string& bridge_name) {
  AGBOX_TRY_VOID(check());
  Laps laps;
  AGBOX_TRY(routing, routing_.read());
  const BridgeSeen bridge = inspect_bridge(bridge_name, routing);
  AGBOX_TRY_VOID(
      check_bridge({.prefix = our_bridges_, .address_pool = options_.address_pool}, bridge));
  const auto bridge_took = laps.next();
  AGBOX_TRY_VOID(firewall_.verify());
  const auto tables_took = laps.next();
  AGBOX_TRY(gateway, gateway_of(bridge));
  AGBOX_TRY(listener, ProbeListener::open(gateway, {.networks = bridge.networks,
                                                    .of_this_host = bridge.host_addresses}));
  AGBOX_TRY(mark, firewall_.begin_count(bridge_name));
  return std::make_unique<Verification>(Verification{.bridge_name = bridge_name,
                                                     .listener = std::move(listener),
                                                     .mark = std::move(mark),
                                                     .bridge = bridge_took,
                                                     .tables = tables_took,
                                                     .listening = laps.next()});
}

Result<> FirewallMonitor::end_verification(Verification& verification,
                                           const Result<ProbeReport>& inside) {
  Laps laps;
  const ProbeListener::Seen listener = verification.listener.check();
  AGBOX_TRY(refused, firewall_.end_count(verification.bridge_name, verification.mark));
  verification.verdict = laps.next();
  // A connection that reached the listener counts, even if the guest does not report it.
  if (!inside && !listener.was_reached) return std::unexpected(inside.error());
  return judge_probe({.address = verification.listener.address(),
                      .inside = inside.value_or(ProbeReport{}),
                      .listener_answers = listener.answers,
                      .listener_was_reached = listener.was_reached,
                      .refused_by_us = refused.value_or(0)});
}

unsigned FirewallMonitor::restore() {
  static_cast<void>(repair_all());  // the verification that follows reports what is refused
  return firewall_.replacements();
}

Result<FirewallFacts> FirewallMonitor::inspect() {
  AGBOX_TRY_VOID(repair_all());
  return firewall_.inspect();
}

asio::awaitable<void> FirewallMonitor::watch_tables() {
  while (co_await table_events_.wait()) {
    if (!take_table_events()) continue;
    const std::uint64_t repairs_before = health_.repairs;
    repair();
    const bool was_at_work = health_.repairs != repairs_before || !table_problem_.empty();
    if (was_at_work) co_await delay(kAfterRepair);
  }
}

asio::awaitable<void> FirewallMonitor::watch_routes() {
  while (co_await route_events_.wait()) {
    // Whatever changed, also if events were lost: read the lists again.
    static_cast<void>(route_events_.drain([](const nlmsghdr*) {}));
    static_cast<void>(follow_routes());
    co_await delay(kAfterRouteChange);
  }
}

Result<> FirewallMonitor::repair_all() {
  if (route_problem_.empty()) {
    repair_if_needed();
  } else {
    static_cast<void>(follow_routes());
  }
  return check();
}

void FirewallMonitor::repair_if_needed() {
  if (take_table_events() || !table_problem_.empty()) repair();
}

asio::awaitable<void> FirewallMonitor::repair_after(asio::awaitable<bool> delay) {
  if (co_await std::move(delay)) static_cast<void>(repair_all());
}

Result<> FirewallMonitor::check() const {
  if (health_.shortcoming.empty()) return {};
  return fail(reason::kIsolationUnavailable, health_.shortcoming);
}

bool FirewallMonitor::take_table_events() {
  bool was_changed = false;
  const bool complete = table_events_.drain(
      [&](const nlmsghdr* event) { was_changed = take_table_event(event) || was_changed; });
  if (firewall_faults::ignores_changes()) return false;
  // Lost events may have concerned us.
  return was_changed || !complete;
}

bool FirewallMonitor::take_table_event(const nlmsghdr* event) {
  const bool is_nftables = event->nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES;
  if (!is_nftables || event->nlmsg_pid == firewall_.port_id()) return false;
  if (mnl_nlmsg_get_payload_len(event) < sizeof(nfgenmsg)) return false;
  if ((event->nlmsg_type & 0xFF) == NFT_MSG_NEWGEN) {  // end of a transaction, names the process
    if (!std::exchange(transaction_concerns_us_, false)) return false;
    if (last_writer_.pid != 0) return true;
    for_each_attribute(event, sizeof(nfgenmsg), [&](const nlattr* attribute) {
      const std::uint16_t type = mnl_attr_get_type(attribute);
      if (type == NFTA_GEN_PROC_PID && mnl_attr_validate(attribute, MNL_TYPE_U32) == 0) {
        last_writer_.pid = ntohl(mnl_attr_get_u32(attribute));
      }
      if (type == NFTA_GEN_PROC_NAME && mnl_attr_validate(attribute, MNL_TYPE_NUL_STRING) == 0) {
        last_writer_.program = mnl_attr_get_str(attribute);
      }
    });
    return true;
  }
  const auto* header = static_cast<const nfgenmsg*>(mnl_nlmsg_get_payload(event));
  const nft::TableName table{.family = header->nfgen_family, .name = table_of_event(event)};
  if (std::ranges::find(our_tables_, table) != our_tables_.end()) transaction_concerns_us_ = true;
  return false;
}

void FirewallMonitor::repair() {
  const auto repaired = firewall_.repair();
  if (!repaired) return set_problem(table_problem_, repaired.error().message());
  if (*repaired) report_repair(**repaired);
  last_writer_ = {};
  set_problem(table_problem_, {});
}

void FirewallMonitor::report_repair(const std::string& difference) {
  ++health_.repairs;
  health_.last_repair = difference + ", changed by " +
                        (last_writer_.pid == 0 ? std::string("an unknown process")
                                               : "'" + last_writer_.program + "' (pid " +
                                                     std::to_string(last_writer_.pid) + ")");
  log_.warn("sandbox firewall restored after a change by another process",
            {{"difference", difference},
             {"program", last_writer_.program},
             {"pid", last_writer_.pid},
             {"repairs", health_.repairs}});
  on_health_(health_);
}

Result<> FirewallMonitor::follow_routes() {
  repair_if_needed();  // first, because follow() does not name what differed
  const HostNetwork before = firewall_.host();
  const auto host = read_host_network();
  const auto followed = host ? firewall_.follow(*host) : std::unexpected(host.error());
  set_problem(route_problem_, followed ? std::string() : followed.error().message());
  if (!followed) return std::unexpected(followed.error());
  if (*followed) report_repair("tables or sets were missing");
  if (firewall_.host() != before) {
    log_.info("sandbox firewall follows the host's networks",
              {{"uplinks", firewall_.host().uplinks.size()},
               {"on_link", firewall_.host().on_link.size()},
               {"resolvers", firewall_.host().resolvers.size()}});
  }
  return {};
}

Result<HostNetwork> FirewallMonitor::read_host_network() {
  AGBOX_TRY(routing, routing_.read());
  return HostNetwork{.uplinks = uplinks_of(routing, our_bridges_),
                     .on_link = on_link_networks_of(routing, our_bridges_),
                     .resolvers = resolvers_};
}

asio::awaitable<void> FirewallMonitor::delay(milliseconds duration) {
  asio::steady_timer timer(executor_, duration);
  co_await timer.async_wait(kAwait);
}

void FirewallMonitor::set_problem(std::string& which, std::string problem) {
  which = std::move(problem);
  const std::string& first = table_problem_.empty() ? route_problem_ : table_problem_;
  if (first.empty()) {
    retry_timer_.reset();
  } else if (!retry_timer_.is_waiting()) {
    tasks_.spawn("repair the firewall", repair_after(retry_timer_.wait()));
  }
  if (first == health_.shortcoming) return;
  health_.shortcoming = first;
  if (first.empty()) {
    log_.info("sandbox firewall in place again");
  } else {
    log_.error("sandbox firewall not in place: no sandbox is created or started",
               {{"error", first}});
  }
  on_health_(health_);
}

}  // namespace agbox
