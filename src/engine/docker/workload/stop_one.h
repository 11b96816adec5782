// SPDX-License-Identifier: Apache-2.0
// Ends one container of a sandbox.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "engine/docker/api/engine_client.h"

namespace agbox {

// How long a container has to end by itself before the engine kills it.
inline constexpr std::chrono::seconds kStopGrace{5};

// Succeeds if it does not run, or is gone. The engine unpauses what it stops, and then it would run
// for the grace period.
inline EngineAwaitable<> stop_one(EngineClient& client, std::string container_id, bool is_paused,
                                  CallOptions options) {
  if (is_paused) return client.kill_if_there(std::move(container_id), std::move(options));
  return client.stop_if_there(std::move(container_id), kStopGrace, std::move(options));
}

}  // namespace agbox
