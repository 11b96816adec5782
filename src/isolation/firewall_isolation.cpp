// SPDX-License-Identifier: Apache-2.0
#include "isolation/firewall_isolation.h"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "isolation/netlink/host_link.h"
#include "model/object_names.h"
#include "model/reasons.h"

namespace agbox {
namespace {

// A stranger who changes the rules during each of them in a row does not do so by accident.
constexpr int kProofAttempts = 5;

// Whoever waits cannot be cancelled meanwhile: it takes milliseconds, and a half-told answer would
// be worse.
template <class T>
boost::asio::awaitable<T> run_on(boost::asio::any_io_executor executor,
                                 boost::asio::awaitable<T> work) {
  co_return co_await boost::asio::co_spawn(
      executor, std::move(work),
      boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(),
                                          boost::asio::use_awaitable));
}

std::int64_t microseconds_between(std::chrono::steady_clock::time_point from,
                                  std::chrono::steady_clock::time_point to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

std::unexpected<Error> firewall_not_started() {
  return fail(reason::kIsolationUnavailable, "the firewall of the sandboxes is not loaded yet");
}

}  // namespace

FirewallIsolation::FirewallIsolation(boost::asio::any_io_executor home,
                                     boost::asio::any_io_executor worker, FirewallOptions options,
                                     Logger log)
    : home_(std::move(home)),
      worker_(std::move(worker)),
      options_(std::move(options)),
      log_(std::move(log)) {}

FirewallIsolation::~FirewallIsolation() {
  AGBOX_CHECK(!monitor_, "stop() before destruction");
}

boost::asio::awaitable<Result<>> FirewallIsolation::start(std::vector<Ipv4Address> resolvers,
                                                          std::function<void()> on_repair) {
  reported_->on_repair = std::move(on_repair);
  auto outcome = co_await run_on(worker_, start_there(std::move(resolvers)));
  started_ = outcome.has_value();
  co_return outcome;
}

boost::asio::awaitable<Result<>> FirewallIsolation::set_resolvers(
    std::vector<Ipv4Address> resolvers) {
  co_return co_await run_on(worker_, set_resolvers_there(std::move(resolvers)));
}

boost::asio::awaitable<Result<>> FirewallIsolation::stop(bool remove_rules) {
  started_ = false;
  reported_->on_repair = {};
  co_return co_await run_on(worker_, stop_there(remove_rules));
}

boost::asio::awaitable<Result<>> FirewallIsolation::prove(std::string bridge_name, Probe probe) {
  unsigned replacements = co_await run_on(worker_, put_back_there());
  for (int attempt = 1;; ++attempt) {
    auto proven = co_await prove_once(bridge_name, probe);
    if (proven || attempt == kProofAttempts) co_return proven;
    const unsigned replacements_now = co_await run_on(worker_, put_back_there());
    if (std::exchange(replacements, replacements_now) == replacements_now) co_return proven;
  }
}

boost::asio::awaitable<Result<>> FirewallIsolation::prove_once(std::string bridge_name,
                                                               const Probe& probe) {
  using std::chrono::steady_clock;
  const auto began = steady_clock::now();
  AGBOX_CO_TRY(proof, co_await run_on(worker_, begin_proof_there(std::move(bridge_name))));
  const auto asked = steady_clock::now();
  const Result<ProbeReport> inside =
      co_await probe({.address = proof->listener.address(), .port = proof->listener.port()});
  const auto told = steady_clock::now();
  auto outcome = co_await run_on(worker_, end_proof_there(*proof, inside));
  log_.debug("what a proof of the isolation took",
             {{"bridge", proof->bridge_name},
              {"bridge_us", proof->bridge.count()},
              {"tables_us", proof->tables.count()},
              {"listener_us", proof->listening.count()},
              {"inside_us", microseconds_between(asked, told)},
              {"verdict_us", proof->verdict.count()},
              {"whole_us", microseconds_between(began, steady_clock::now())}});
  co_return outcome;
}

boost::asio::awaitable<Result<FirewallFacts>> FirewallIsolation::look() {
  co_return co_await run_on(worker_, look_there());
}

IsolationHealth FirewallIsolation::health() const {
  if (started_) return reported_->health;
  return {.shortcoming = firewall_not_started().error().message()};
}

boost::asio::awaitable<Result<>> FirewallIsolation::start_there(
    std::vector<Ipv4Address> resolvers) {
  const auto report = [home = home_,
                       weak = std::weak_ptr(reported_)](const IsolationHealth& health) {
    boost::asio::post(home, [weak, health] {
      const auto kept = weak.lock();
      if (!kept) return;
      const bool was_repaired = health.repairs != kept->health.repairs;
      kept->health = health;
      if (was_repaired && kept->on_repair) kept->on_repair();
    });
  };
  AGBOX_CO_TRY(monitor,
               FirewallMonitor::start(worker_, options_, std::move(resolvers), report, log_));
  monitor_ = std::move(monitor);
  log_.info("the firewall of the sandboxes is loaded", {{"table", table_name()}});
  co_return Result<>{};
}

boost::asio::awaitable<Result<>> FirewallIsolation::stop_there(bool remove_rules) {
  if (!monitor_) co_return Result<>{};
  co_await monitor_->stop();
  const auto monitor = std::move(monitor_);
  if (!remove_rules) co_return Result<>{};
  // Whoever asks may not know of all: a container that no store knows runs on behind its bridge.
  AGBOX_CO_TRY(bridges, find_links(bridge_prefix(options_.instance_id)));
  if (!bridges.empty()) {
    log_.warn("the firewall of the sandboxes stays, because bridges are left that need it",
              {{"table", table_name()}, {"bridges", bridges.size()}, {"bridge", bridges.front()}});
    co_return Result<>{};
  }
  AGBOX_CO_TRY_VOID(monitor->remove_rules());
  log_.info("the firewall of the sandboxes is removed", {{"table", table_name()}});
  co_return Result<>{};
}

boost::asio::awaitable<Result<std::unique_ptr<FirewallMonitor::Proof>>>
FirewallIsolation::begin_proof_there(std::string bridge_name) {
  if (!monitor_) co_return firewall_not_started();
  AGBOX_CO_TRY(proof, monitor_->begin_proof(bridge_name));
  co_return std::make_unique<FirewallMonitor::Proof>(std::move(proof));
}

boost::asio::awaitable<Result<>> FirewallIsolation::end_proof_there(
    FirewallMonitor::Proof& proof, const Result<ProbeReport>& inside) {
  if (!monitor_) co_return firewall_not_started();
  co_return monitor_->end_proof(proof, inside);
}

boost::asio::awaitable<unsigned> FirewallIsolation::put_back_there() {
  co_return monitor_ ? monitor_->put_back() : 0U;
}

boost::asio::awaitable<Result<FirewallFacts>> FirewallIsolation::look_there() {
  if (!monitor_) co_return firewall_not_started();
  co_return monitor_->look();
}

boost::asio::awaitable<Result<>> FirewallIsolation::set_resolvers_there(
    std::vector<Ipv4Address> resolvers) {
  if (!monitor_) co_return firewall_not_started();
  co_return monitor_->set_resolvers(std::move(resolvers));
}

}  // namespace agbox
