// SPDX-License-Identifier: Apache-2.0
// When the janitor runs, and when it retries.
#include <chrono>
#include <utility>

#include "base/check.h"
#include "control/upkeep/janitor.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstRest = 1000ms;
constexpr auto kLongestRest = std::chrono::milliseconds(1min);

}  // namespace

Janitor::Janitor(Services& services, const SandboxClaims& claims)
    : services_(services),
      claims_(claims),
      log_(services.log),
      rest_(services.loop.io().get_executor(), kFirstRest, kLongestRest) {}

void Janitor::sweep() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (is_sweeping_) {
    sweeps_again_ = true;
    rest_.skip();
    return;
  }
  is_sweeping_ = true;
  services_.tasks.spawn("janitor", run());
}

asio::awaitable<void> Janitor::run() {
  rest_.reset();
  do {
    sweeps_again_ = false;
    // When the engine is reachable again, its event stream begins, and that starts the next sweep.
    if (!services_.engine_status.now()) break;
    const auto swept = co_await sweep_once();
    ++sweeps_;
    if (swept) {
      log_.debug("orphans were looked for");
    } else if (swept.error().end() != OperationEnd::Cancelled) {
      log_.warn("orphans could not all be looked for; tried again",
                {{"error", swept.error().message()}});
      // The event stream may continue although one of our calls failed.
      const bool is_asked_for_more = std::exchange(sweeps_again_, true);
      if (!is_asked_for_more) co_await rest_.wait();
    }
  } while (sweeps_again_ && !services_.is_shutting_down);
  is_sweeping_ = false;
}

}  // namespace agbox
