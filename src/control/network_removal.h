// SPDX-License-Identifier: Apache-2.0
// Removes the networks of a sandbox, and its bridge where the engine leaves that behind. An engine
// whose client or whose own process goes away while it makes a network forgets the network but not
// the bridge; whatever network gets that bridge next then does not take it along either.
#pragma once

#include "base/log.h"
#include "docker/engine_client.h"

namespace agbox {

EngineAwaitable<> remove_networks(EngineClient& engine, ObjectOwner owner, CallOptions options,
                                  Logger log);

}  // namespace agbox
