// SPDX-License-Identifier: Apache-2.0
// The log of one container, read from the engine piece by piece.
#pragma once

#include <memory>

#include "engine/docker/api/engine_client.h"
#include "engine/engine.h"

namespace agbox {

// The client must outlive it.
EngineAwaitable<std::unique_ptr<ContainerLog>> open_container_log(EngineClient& client,
                                                                  ContainerId container,
                                                                  LogQuery query);

}  // namespace agbox
