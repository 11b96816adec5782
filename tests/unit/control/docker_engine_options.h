// SPDX-License-Identifier: Apache-2.0
// The options of a DockerEngine on this host's network, as the daemon has them.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "engine/docker/docker_engine.h"
#include "isolation/netlink/host_link.h"
#include "isolation/netlink/routing.h"
#include "isolation/seccomp_profile.h"

namespace agbox {

inline DockerEngineOptions docker_engine_options(std::string socket_path, std::string instance_id,
                                                 std::string_view address_pool) {
  return {.socket_path = std::move(socket_path),
          .environment = {},
          .instance_id = std::move(instance_id),
          .address_pool = parse_ipv4_network(address_pool).value(),
          .host = {.networks_in_use = read_networks_in_use,
                   .has_link = has_link,
                   .find_links = find_links,
                   .remove_link = remove_link},
          .seccomp_profile = std::string(seccomp_profile())};
}

}  // namespace agbox
