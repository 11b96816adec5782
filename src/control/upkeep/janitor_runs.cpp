// SPDX-License-Identifier: Apache-2.0
// When the janitor runs, and when it retries.
#include <chrono>
#include <utility>

#include "base/check.h"
#include "control/upkeep/janitor.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstSweepDelay = 1000ms;
constexpr auto kLongestSweepDelay = std::chrono::milliseconds(1min);

}  // namespace

Janitor::Janitor(ActorServices& services, const SandboxClaims& claims)
    : services_(services),
      claims_(claims),
      log_(services.log),
      retry_timer_(services.loop.io().get_executor(), kFirstSweepDelay, kLongestSweepDelay) {}

void Janitor::sweep() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (is_sweeping_) {
    sweeps_again_ = true;
    retry_timer_.skip();
    return;
  }
  is_sweeping_ = true;
  services_.tasks.spawn("janitor", run());
}

asio::awaitable<void> Janitor::run() {
  retry_timer_.reset();
  do {
    sweeps_again_ = false;
    // When the engine is reachable again, its event stream begins, and that starts the next sweep.
    if (!services_.engine_status.now()) break;
    const auto swept = co_await sweep_once();
    ++sweeps_;
    if (swept) {
      log_.debug("orphans were swept");
    } else if (swept.error().end() != OperationEnd::Cancelled) {
      log_.warn("orphans could not all be swept, retrying", {{"error", swept.error().message()}});
      // The event stream may continue although one of our calls failed.
      const bool is_asked_for_more = std::exchange(sweeps_again_, true);
      if (!is_asked_for_more) co_await retry_timer_.wait();
    }
  } while (sweeps_again_ && !services_.is_shutting_down);
  is_sweeping_ = false;
}

}  // namespace agbox
