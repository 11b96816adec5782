// SPDX-License-Identifier: Apache-2.0
// Measures what the containers of sandboxes use, when a client asks. All who watch one sandbox
// share the measurements: however many they are, the engine is asked as often as the fastest of
// them needs, and never if there is none.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agbox/v1/stats.pb.h"
#include "async/event.h"
#include "base/result.h"
#include "control/actor_services.h"
#include "control/directory.h"
#include "model/spec/maxima.h"

namespace agbox {

class StatsSampler {
 public:
  // Returns when the next one may come; false if the client is gone.
  using Write = std::function<asio::awaitable<bool>(v1::SandboxStats stats)>;

  StatsSampler(ActorServices& services, Directory& directory)
      : services_(services), directory_(directory) {}

  asio::awaitable<Result<v1::SandboxStats>> measure(std::string sandbox_id);
  // One measurement per interval until the sandbox is deleted, the first one at once.
  // RESOURCE_EXHAUSTED beyond maxima::kStatsWatchers.
  asio::awaitable<Result<>> watch(std::string sandbox_id, std::chrono::nanoseconds interval,
                                  Write write);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // The latest measurement of a sandbox; it exists while a client watches or measures it.
  struct Shared {
    std::optional<Result<v1::SandboxStats>> latest;
    SteadyTime measured_at{};
    std::shared_ptr<Event> is_measured;  // set by who measures now; null if nobody does
  };
  asio::awaitable<Result<>> write_repeatedly(const std::string& sandbox_id,
                                             std::chrono::nanoseconds interval, const Write& write);
  // One that is at most this old, of others or a new one.
  asio::awaitable<Result<v1::SandboxStats>> measurement(const std::string& sandbox_id,
                                                        std::chrono::nanoseconds age);
  asio::awaitable<Result<v1::SandboxStats>> measure_now(const std::string& sandbox_id);
  std::shared_ptr<Shared> shared_of(const std::string& sandbox_id);

  ActorServices& services_;
  Directory& directory_;
  std::map<std::string, std::weak_ptr<Shared>> shared_;  // by sandbox ID
  std::size_t watchers_ = 0;
};

}  // namespace agbox
