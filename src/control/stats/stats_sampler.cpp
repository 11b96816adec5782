// SPDX-License-Identifier: Apache-2.0
#include "control/stats/stats_sampler.h"

#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "async/await.h"
#include "async/cancellation.h"
#include "base/check.h"
#include "model/reasons.h"

namespace agbox {
namespace {

void fill(google::protobuf::Duration& into, std::chrono::nanoseconds value) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(value);
  into.set_seconds(seconds.count());
  into.set_nanos(static_cast<std::int32_t>((value - seconds).count()));
}

v1::ContainerStats to_stats(const std::string& name, const ContainerUsage& usage) {
  v1::ContainerStats stats;
  stats.set_name(name);
  if (!usage.is_running) return stats;
  stats.set_running(true);
  fill(*stats.mutable_cpu_time(), usage.cpu_time);
  fill(*stats.mutable_user_cpu(), usage.user_cpu);
  fill(*stats.mutable_system_cpu(), usage.system_cpu);
  stats.set_memory_bytes(usage.memory_bytes);
  stats.set_memory_limit_bytes(usage.memory_limit_bytes);
  if (usage.memory_peak_bytes) stats.set_memory_peak_bytes(*usage.memory_peak_bytes);
  stats.set_pids(usage.pids);
  stats.set_network_rx_bytes(usage.network_rx_bytes);
  stats.set_network_tx_bytes(usage.network_tx_bytes);
  stats.set_block_read_bytes(usage.block_read_bytes);
  stats.set_block_write_bytes(usage.block_write_bytes);
  return stats;
}

std::unexpected<Error> cancelled_stats() {
  return fail(reason::kCancelled, "cancelled");
}

}  // namespace

std::shared_ptr<StatsSampler::Shared> StatsSampler::shared_of(const std::string& sandbox_id) {
  std::weak_ptr<Shared>& known = shared_[sandbox_id];
  if (auto shared = known.lock()) return shared;
  // The entry goes with the last who holds it.
  std::shared_ptr<Shared> shared(new Shared, [this, sandbox_id](Shared* last) {
    delete last;
    shared_.erase(sandbox_id);
  });
  known = shared;
  return shared;
}

asio::awaitable<Result<v1::SandboxStats>> StatsSampler::measure(std::string sandbox_id) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  co_return co_await measurement(sandbox_id, std::chrono::nanoseconds::zero());
}

asio::awaitable<Result<>> StatsSampler::watch(std::string sandbox_id,
                                              std::chrono::nanoseconds interval, Write write) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (watchers_ >= maxima::kStatsWatchers) {
    co_return fail(reason::kResourceExhausted,
                   "watchers of the usage of all sandboxes: at most " +
                       std::to_string(maxima::kStatsWatchers) +
                       " are possible; wait until some of them end, or watch fewer sandboxes");
  }
  ++watchers_;
  Result<> outcome = co_await write_repeatedly(sandbox_id, interval, write);
  --watchers_;
  co_return outcome;
}

asio::awaitable<Result<>> StatsSampler::write_repeatedly(const std::string& sandbox_id,
                                                         std::chrono::nanoseconds interval,
                                                         const Write& write) {
  const std::shared_ptr<Shared> kept = shared_of(sandbox_id);
  asio::steady_timer timer(services_.loop.io(), std::chrono::steady_clock::now());
  bool has_begun = false;
  while (!co_await is_cancelled()) {
    // Younger than the previous one, which is an interval old.
    auto stats = co_await measurement(sandbox_id, interval * 9 / 10);
    const bool is_gone = !stats && (stats.error().reason() == reason::kContainerNotFound ||
                                    stats.error().reason() == reason::kSandboxNotFound);
    if (is_gone && has_begun) co_return Result<>{};
    if (!stats) co_return std::unexpected(stats.error());
    has_begun = true;
    if (!co_await write(std::move(*stats))) break;
    // A client that took longer than an interval gets the next one at once, and none to catch up.
    timer.expires_at(std::max(timer.expiry() + interval, std::chrono::steady_clock::now()));
    co_await timer.async_wait(kAwait);
  }
  co_return cancelled_stats();
}

asio::awaitable<Result<v1::SandboxStats>> StatsSampler::measurement(const std::string& sandbox_id,
                                                                    std::chrono::nanoseconds age) {
  const std::shared_ptr<Shared> shared = shared_of(sandbox_id);
  const SteadyTime begun_at = std::chrono::steady_clock::now();
  while (true) {
    if (co_await is_cancelled()) co_return cancelled_stats();
    if (shared->latest && shared->measured_at + age >= begun_at) co_return *shared->latest;
    if (!shared->is_measured) break;
    const auto is_measured = shared->is_measured;
    co_await is_measured->wait();
  }
  const auto is_measured = std::make_shared<Event>(services_.loop.io().get_executor());
  shared->is_measured = is_measured;
  const SteadyTime measured_at = std::chrono::steady_clock::now();
  auto stats = co_await measure_now(sandbox_id);
  shared->is_measured.reset();
  // If this client has left, the next of those who wait measures instead.
  if (stats || stats.error().reason() != reason::kCancelled) {
    shared->latest = stats;
    shared->measured_at = measured_at;
  }
  is_measured->set();
  co_return stats;
}

asio::awaitable<Result<v1::SandboxStats>> StatsSampler::measure_now(const std::string& sandbox_id) {
  AGBOX_CO_TRY(containers, directory_.containers(sandbox_id));
  v1::SandboxStats stats;
  stats.set_sandbox_id(sandbox_id);
  const auto now = services_.clock.wall_now().time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
  stats.mutable_time()->set_seconds(seconds.count());
  stats.mutable_time()->set_nanos(static_cast<std::int32_t>((now - seconds).count()));
  for (const auto& [name, id] : containers) {
    ContainerUsage usage;
    if (!id.container_id.empty()) {
      auto measured = co_await services_.engine.measure(id);
      const bool is_gone = !measured && measured.error().kind() == EngineErrorKind::NotFound;
      if (!measured && !is_gone) co_return std::unexpected<Error>(measured.error());
      if (measured) usage = *measured;
    }
    *stats.add_containers() = to_stats(name, usage);
  }
  co_return stats;
}

}  // namespace agbox
