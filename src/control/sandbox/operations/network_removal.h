// SPDX-License-Identifier: Apache-2.0
// Removes the networks of a sandbox, and bridges where the engine leaves them behind. An engine
// whose client or whose own process goes away while it makes a network forgets the network but not
// the bridge; whatever network gets that bridge next then does not take it along either.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "control/services.h"
#include "engine/docker/api/engine_client.h"

namespace agbox {

EngineAwaitable<> remove_networks(Services& services, ObjectOwner owner, CallOptions options,
                                  Logger log);

// Those of the bridges that no network of the engine has. One that cannot be removed is logged: it
// does no harm that would be worth a sandbox which cannot be deleted.
EngineAwaitable<> remove_forgotten_bridges(Services& services, std::vector<std::string> bridges,
                                           CallOptions options, Logger log);

}  // namespace agbox
