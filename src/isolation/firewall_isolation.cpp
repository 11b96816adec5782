// SPDX-License-Identifier: Apache-2.0
#include "isolation/firewall_isolation.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "async/run_blocking.h"
#include "base/check.h"
#include "isolation/netlink/host_link.h"
#include "model/object_names.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// Changes by another process during this many verifications in a row are no accident.
constexpr int kVerificationAttempts = 5;

std::int64_t microseconds_between(std::chrono::steady_clock::time_point from,
                                  std::chrono::steady_clock::time_point to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

std::unexpected<Error> firewall_not_started() {
  return fail(reason::kIsolationUnavailable, "the sandbox firewall is not loaded yet");
}

}  // namespace

FirewallIsolation::FirewallIsolation(asio::any_io_executor home, asio::any_io_executor worker,
                                     FirewallOptions options, Logger log)
    : home_(std::move(home)),
      worker_(std::move(worker)),
      options_(std::move(options)),
      log_(std::move(log)) {}

FirewallIsolation::~FirewallIsolation() {
  AGBOX_CHECK(!monitor_, "stop() before destruction");
}

template <class Work>
auto FirewallIsolation::on_worker(Work work) {
  using Outcome = std::invoke_result_t<Work&, FirewallMonitor&>;
  return run_blocking(worker_, [this, work = std::move(work)]() mutable -> Outcome {
    if (!monitor_) return firewall_not_started();
    return work(*monitor_);
  });
}

asio::awaitable<Result<>> FirewallIsolation::start(std::vector<Ipv4Address> resolvers,
                                                   std::function<void()> on_change) {
  reported_->on_change = std::move(on_change);
  auto outcome = co_await run_blocking(worker_, [this, resolvers = std::move(resolvers)]() mutable {
    return start_on_worker(std::move(resolvers));
  });
  started_ = outcome.has_value();
  co_return outcome;
}

asio::awaitable<Result<>> FirewallIsolation::set_resolvers(std::vector<Ipv4Address> resolvers) {
  return on_worker([resolvers = std::move(resolvers)](FirewallMonitor& monitor) mutable {
    return monitor.set_resolvers(std::move(resolvers));
  });
}

asio::awaitable<Result<>> FirewallIsolation::stop(bool remove_rules) {
  started_ = false;
  reported_->on_change = {};
  // Not cancelled: it takes milliseconds, and a partial result would be worse.
  co_return co_await asio::co_spawn(
      worker_, stop_on_worker(remove_rules),
      asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable));
}

asio::awaitable<Result<>> FirewallIsolation::verify(std::string bridge_name, Probe probe) {
  unsigned replacements = co_await restore();
  for (int attempt = 1;; ++attempt) {
    auto verified = co_await verify_once(bridge_name, probe);
    if (verified || attempt == kVerificationAttempts) co_return verified;
    const unsigned replacements_now = co_await restore();
    if (std::exchange(replacements, replacements_now) == replacements_now) co_return verified;
  }
}

asio::awaitable<Result<>> FirewallIsolation::verify_once(std::string bridge_name,
                                                         const Probe& probe) {
  using std::chrono::steady_clock;
  const auto began = steady_clock::now();
  AGBOX_CO_TRY(verification, co_await on_worker([&](FirewallMonitor& monitor) {
                 return monitor.begin_verification(bridge_name);
               }));
  const auto asked = steady_clock::now();
  const Result<ProbeReport> inside = co_await probe(
      {.address = verification->listener.address(), .port = verification->listener.port()});
  const auto answered = steady_clock::now();
  auto outcome = co_await on_worker(
      [&](FirewallMonitor& monitor) { return monitor.end_verification(*verification, inside); });
  log_.debug("isolation verification timing",
             {{"bridge", verification->bridge_name},
              {"bridge_us", verification->bridge.count()},
              {"tables_us", verification->tables.count()},
              {"listener_us", verification->listening.count()},
              {"inside_us", microseconds_between(asked, answered)},
              {"verdict_us", verification->verdict.count()},
              {"whole_us", microseconds_between(began, steady_clock::now())}});
  co_return outcome;
}

asio::awaitable<Result<FirewallFacts>> FirewallIsolation::inspect() {
  return on_worker([](FirewallMonitor& monitor) { return monitor.inspect(); });
}

asio::awaitable<unsigned> FirewallIsolation::restore() {
  return run_blocking(worker_, [this] { return monitor_ ? monitor_->restore() : 0U; });
}

IsolationHealth FirewallIsolation::health() const {
  if (started_) return reported_->health;
  return {.shortcoming = firewall_not_started().error().message()};
}

Result<> FirewallIsolation::start_on_worker(std::vector<Ipv4Address> resolvers) {
  const auto report = [home = home_,
                       weak = std::weak_ptr(reported_)](const IsolationHealth& health) {
    asio::post(home, [weak, health] {
      const auto kept = weak.lock();
      if (!kept) return;
      const bool is_news =
          health.repairs != kept->health.repairs || health.shortcoming != kept->health.shortcoming;
      kept->health = health;
      if (is_news && kept->on_change) kept->on_change();
    });
  };
  AGBOX_TRY(monitor, FirewallMonitor::start(worker_, options_, std::move(resolvers), report, log_));
  monitor_ = std::move(monitor);
  log_.info("sandbox firewall loaded", {{"table", table_name()}});
  return {};
}

asio::awaitable<Result<>> FirewallIsolation::stop_on_worker(bool remove_rules) {
  if (!monitor_) co_return Result<>{};
  co_await monitor_->stop();
  const auto monitor = std::move(monitor_);
  if (!remove_rules) co_return Result<>{};
  // The caller may not know all sandboxes: a container missing in the store may still run.
  AGBOX_CO_TRY(bridges, find_links(bridge_prefix(options_.instance_id)));
  if (!bridges.empty()) {
    log_.warn("sandbox firewall kept: bridges remain that need it",
              {{"table", table_name()}, {"bridges", bridges.size()}, {"bridge", bridges.front()}});
    co_return Result<>{};
  }
  AGBOX_CO_TRY_VOID(monitor->remove_rules());
  log_.info("sandbox firewall removed", {{"table", table_name()}});
  co_return Result<>{};
}

}  // namespace agbox
