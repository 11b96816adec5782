// SPDX-License-Identifier: Apache-2.0
// Removes containers, networks and bridges of this instance that no sandbox claims: what the engine
// created although its answer was lost, what a crash left between two steps, what someone restored.
// Each removal is logged with its reason. What does not carry our instance's label, or as a bridge
// its name, is never touched.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/network/network_removal.h"
#include "engine/engine.h"

namespace agbox {

class OrphanSweep {
 public:
  OrphanSweep(EngineClient& client, NetworkRemoval& network_removal, std::string instance_id,
              Logger log)
      : client_(client),
        network_removal_(network_removal),
        ours_{.instance = std::move(instance_id)},
        log_(std::move(log)) {}

  EngineAwaitable<> sweep(const SandboxClaims& claims, std::string engine_id);
  const std::vector<UnknownPrimary>& unknown_primaries() const { return unknown_primaries_; }

  // Among the containers that the engine lists now.
  std::vector<UnknownPrimary> unknown_primaries_among(
      const SandboxClaims& claims, const std::vector<ContainerListed>& listed) const;
  // Whether a sweep would remove or report what was created just now.
  bool is_orphan_container(const SandboxClaims& claims, const std::string& container_id,
                           const EngineLabels& labels) const;
  bool is_orphan_network(const SandboxClaims& claims, const std::string& sandbox_id) const;

 private:
  EngineAwaitable<> sweep_containers(const SandboxClaims& claims, CallOptions options);
  EngineAwaitable<> sweep_networks(const SandboxClaims& claims, CallOptions options);
  EngineAwaitable<> sweep_bridges(const SandboxClaims& claims, CallOptions options);
  struct Judged {
    std::string sandbox_id;
    Judgement judgement;
  };
  // nullopt if it is not ours, or of no sandbox.
  std::optional<Judged> judge(const SandboxClaims& claims, const std::string& container_id,
                              const EngineLabels& labels) const;
  // Whether the sweep can continue after this removal: a refused one affects no other.
  EngineResult<> allow(EngineResult<> removed) const;
  void report(UnknownPrimary primary, const std::string& reason);
  bool has_unknown_primary(const std::string& sandbox_id) const;
  ObjectOwner owner(const std::string& sandbox_id) const {
    return {.instance = ours_.instance, .sandbox_id = sandbox_id};
  }

  EngineClient& client_;
  NetworkRemoval& network_removal_;
  ObjectOwner ours_;
  Logger log_;
  std::vector<UnknownPrimary> unknown_primaries_;  // of the latest sweep
};

}  // namespace agbox
