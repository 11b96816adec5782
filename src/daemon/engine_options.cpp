// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine_options.h"

#include <utility>

#include "daemon/descriptor_limits.h"
#include "isolation/netlink/host_link.h"
#include "isolation/netlink/routing.h"
#include "isolation/seccomp_profile.h"
#include "model/network/sandbox_subnet.h"
#include "model/object_names.h"
#include "paths/engine_endpoint.h"

namespace agbox {

Result<DockerEngineOptions> engine_options(const Configuration& configuration,
                                           const Environment& environment,
                                           std::string instance_id) {
  // Sandboxes of other daemons may share the pool: each takes free networks.
  AGBOX_TRY(in_use, read_networks_in_use(kBridgePrefix));
  AGBOX_TRY_VOID(check_address_pool(configuration.address_pool, in_use));
  AGBOX_TRY(socket_path, resolve_engine_socket(environment));
  return DockerEngineOptions{.socket_path = std::move(socket_path),
                             .environment = environment,
                             .instance_id = std::move(instance_id),
                             .address_pool = configuration.address_pool,
                             .host = {.networks_in_use = read_networks_in_use,
                                      .has_link = has_link,
                                      .find_links = find_links,
                                      .remove_link = remove_link},
                             .seccomp_profile = std::string(seccomp_profile()),
                             .descriptor_limit = container_descriptor_limit(descriptor_limit())};
}

}  // namespace agbox
