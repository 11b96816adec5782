// SPDX-License-Identifier: Apache-2.0
// The Docker objects of each sandbox: a network and its containers. The methods are those of
// Engine, as steps that can be repeated: each finds by label what an interrupted attempt created.
#pragma once

#include <string>
#include <utility>

#include "async/task_group.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/images/image_pulls.h"
#include "engine/docker/network/network_removal.h"
#include "engine/docker/network/subnet_pool.h"
#include "engine/docker/workload/container_settings.h"
#include "engine/engine.h"

namespace agbox {

class Workloads {
 public:
  struct Parts {
    EngineClient& client;
    ImagePulls& pulls;
    SubnetPool& subnets;
    NetworkRemoval& network_removal;
    TaskGroup& calls;  // that run to completion; see unbroken_call.h
  };

  Workloads(Parts parts, std::string instance_id, Hardening hardening)
      : client_(parts.client),
        pulls_(parts.pulls),
        subnets_(parts.subnets),
        network_removal_(parts.network_removal),
        calls_(parts.calls),
        instance_id_(std::move(instance_id)),
        hardening_(std::move(hardening)) {}

  EngineAwaitable<> ensure_image(SandboxFacts& facts, Engine::Progress progress);
  EngineAwaitable<> ensure_workload(SandboxFacts& facts, Attachments attachments);
  EngineAwaitable<> require_workload(const SandboxFacts& facts);
  EngineAwaitable<> start(SandboxFacts& facts);
  EngineAwaitable<SandboxInspection> inspect(const SandboxFacts& facts);
  EngineAwaitable<> stop(const SandboxFacts& facts);
  EngineAwaitable<> pause(const SandboxFacts& facts);
  EngineAwaitable<> unpause(const SandboxFacts& facts);
  EngineAwaitable<> stop_all(const SandboxFacts& facts);
  EngineAwaitable<> remove(SandboxFacts& facts);

 private:
  EngineAwaitable<> ensure_network(SandboxFacts& facts);
  void take_subnet_of(const NetworkSeen& network, SandboxFacts& facts);
  EngineAwaitable<> ensure_primary(SandboxFacts& facts, const Attachments& attachments);
  EngineAwaitable<> remove_containers(const SandboxFacts& facts);
  EngineAwaitable<> remove_detached_networks(const SandboxFacts& facts);
  ObjectOwner owner_of(const SandboxFacts& facts) const {
    return {.instance = instance_id_, .sandbox_id = facts.sandbox_id};
  }

  EngineClient& client_;
  ImagePulls& pulls_;
  SubnetPool& subnets_;
  NetworkRemoval& network_removal_;
  TaskGroup& calls_;
  std::string instance_id_;
  Hardening hardening_;
};

}  // namespace agbox
