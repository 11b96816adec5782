// SPDX-License-Identifier: Apache-2.0
// An isolation that isolates nothing and does as the test says: FakeDocker's bridges exist nowhere.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/await.h"
#include "isolation/host_isolation.h"
#include "model/reasons.h"

namespace agbox {

class FakeIsolation final : public HostIsolation {
 public:
  static constexpr ProbeTarget kForbidden{.address = {0x0A630001}, .port = 4242};

  explicit FakeIsolation(boost::asio::io_context& io)
      : until_released_(io, boost::asio::steady_timer::time_point::max()) {}

  boost::asio::awaitable<Result<>> start(std::vector<Ipv4Address> given,
                                         std::function<void()> on_change) override {
    ++starts;
    set(given);
    on_change_ = std::move(on_change);
    if (holds_start) co_await until_released_.async_wait(kAwait);
    is_started = start_problem.empty();
    if (!is_started) co_return fail(reason::kIsolationUnavailable, start_problem);
    co_return Result<>{};
  }
  boost::asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> given) override {
    set(given);
    co_return Result<>{};
  }
  boost::asio::awaitable<Result<>> stop(bool remove_rules) override {
    is_started = false;
    on_change_ = {};
    removed_rules = remove_rules;
    co_return Result<>{};
  }
  boost::asio::awaitable<Result<>> verify(std::string bridge_name, Probe probe) override {
    verifications.push_back(std::move(bridge_name));
    if (on_verification) on_verification();
    if (!verification_problem.empty())
      co_return fail(reason::kIsolationUnavailable, verification_problem);
    const auto inside = co_await probe(kForbidden);
    if (is_reached)
      co_return fail(reason::kIsolationUnavailable, "it is not isolated: it came through");
    if (!inside) co_return std::unexpected(inside.error());
    if (!inside_problem.empty()) co_return fail(reason::kIsolationUnavailable, inside_problem);
    if (inside->outcome == ProbeReport::Outcome::Refused) co_return Result<>{};
    co_return fail(reason::kIsolationUnavailable, "it is not isolated: " + inside->detail);
  }
  boost::asio::awaitable<Result<FirewallFacts>> inspect() override { co_return facts; }
  IsolationHealth health() const override { return {.shortcoming = {}, .repairs = repairs}; }

  void finish_start() { until_released_.expires_at(boost::asio::steady_timer::time_point::min()); }
  void repair() {
    ++repairs;
    on_change_();
  }
  // Rules are missing that cannot be restored.
  void lose_rules(const std::string& problem) {
    verification_problem = problem;
    on_change_();
  }

  bool holds_start = false;  // until finish_start()
  std::string start_problem;
  std::string verification_problem;
  std::string inside_problem;  // which only a guest that answers brings to light
  bool is_reached = false;     // whatever the guest tells
  std::function<void()> on_verification;
  Result<FirewallFacts> facts = FirewallFacts{};

  unsigned starts = 0;  // that were tried
  bool is_started = false;
  std::optional<bool> removed_rules;  // at the last stop
  std::vector<std::string> resolvers;
  std::vector<std::string> verifications;  // the bridges, in the order of asking
  std::uint64_t repairs = 0;

 private:
  void set(const std::vector<Ipv4Address>& addresses) {
    resolvers.clear();
    for (const Ipv4Address& address : addresses) resolvers.push_back(address.text());
  }

  boost::asio::steady_timer until_released_;
  std::function<void()> on_change_;
};

}  // namespace agbox
