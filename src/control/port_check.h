// SPDX-License-Identifier: Apache-2.0
// Whether ports of the host are free for a sandbox. The engine refuses one that is not, but cannot
// name its holder.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "engine/engine.h"
#include "model/spec/ports.h"
#include "place/place.h"

namespace agbox {

// PORT_IN_USE with the holder if something on the host has one of these ports.
asio::awaitable<Result<>> check_host_ports(Engine& engine, Place& place, PortMappings ports);

}  // namespace agbox
