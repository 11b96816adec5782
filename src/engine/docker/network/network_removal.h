// SPDX-License-Identifier: Apache-2.0
// Removes networks of sandboxes, and bridges that the engine leaves behind. If its client or its
// own process ends while it creates a network, it forgets the network but not the bridge; the next
// network that gets this bridge does not remove it either.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/network/host_network_access.h"

namespace agbox {

class NetworkRemoval {
 public:
  NetworkRemoval(EngineClient& client, HostNetworkAccess host, asio::any_io_executor blocking,
                 Logger log)
      : client_(client),
        host_(std::move(host)),
        blocking_(std::move(blocking)),
        log_(std::move(log)) {}

  EngineAwaitable<> remove_networks(ObjectOwner owner, CallOptions options);

  // Bridges of the instance on this host.
  asio::awaitable<Result<std::vector<std::string>>> find_bridges(std::string instance);
  // Those that no network of the engine has. One that cannot be removed is logged: it is harmless,
  // and no reason to keep a sandbox that is to be deleted.
  EngineAwaitable<> remove_forgotten_bridges(std::vector<std::string> bridges, CallOptions options,
                                             Logger log);

 private:
  EngineClient& client_;
  HostNetworkAccess host_;
  asio::any_io_executor blocking_;
  Logger log_;
};

}  // namespace agbox
