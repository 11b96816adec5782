// SPDX-License-Identifier: Apache-2.0
// The engine behind a Docker socket: composes the parts that know Docker, and reports its events.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/task_group.h"
#include "base/log.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/images/image_pulls.h"
#include "engine/docker/images/registry_auth.h"
#include "engine/docker/network/host_network_access.h"
#include "engine/docker/network/network_removal.h"
#include "engine/docker/network/subnet_pool.h"
#include "engine/docker/objects/orphan_sweep.h"
#include "engine/docker/workload/companions.h"
#include "engine/docker/workload/workloads.h"
#include "engine/engine.h"
#include "model/network/ipv4.h"
#include "paths/fixed_paths.h"

namespace agbox {

struct DockerEngineOptions {
  std::string socket_path;
  Environment environment;  // where registry credentials are found
  std::string instance_id;
  Ipv4Network address_pool;
  HostNetworkAccess host;
  std::string seccomp_profile;           // of every container, the JSON text
  std::int64_t descriptor_limit = 1024;  // of every process in a container
  EnginePatience patience{};
};

class DockerEngine final : public Engine {
 public:
  // Runs on `executor`; what may hang in the kernel or block on a disk runs on `blocking`.
  DockerEngine(const asio::any_io_executor& executor, asio::any_io_executor blocking,
               DockerEngineOptions options, Logger log);
  DockerEngine(const DockerEngine&) = delete;

  std::string name() const override { return "the Docker Engine"; }
  asio::awaitable<void> watch(EngineListener& listener, const SandboxClaims& claims) override;

  EngineAwaitable<> ensure_image(SandboxFacts& facts, Progress progress) override {
    return workloads_.ensure_image(facts, std::move(progress));
  }
  EngineAwaitable<> ensure_workload(SandboxFacts& facts, Attachments attachments) override {
    return workloads_.ensure_workload(facts, std::move(attachments));
  }
  EngineAwaitable<> require_workload(const SandboxFacts& facts) override {
    return workloads_.require_workload(facts);
  }
  EngineAwaitable<> start(SandboxFacts& facts) override { return workloads_.start(facts); }
  EngineAwaitable<SandboxInspection> inspect(const SandboxFacts& facts) override {
    return workloads_.inspect(facts);
  }
  EngineAwaitable<> stop(const SandboxFacts& facts) override { return workloads_.stop(facts); }
  EngineAwaitable<> pause(const SandboxFacts& facts) override { return workloads_.pause(facts); }
  EngineAwaitable<> unpause(const SandboxFacts& facts) override {
    return workloads_.unpause(facts);
  }
  EngineAwaitable<> stop_all(const SandboxFacts& facts) override {
    return workloads_.stop_all(facts);
  }
  EngineAwaitable<> remove(SandboxFacts& facts) override { return workloads_.remove(facts); }
  EngineAwaitable<> ensure_companion_image(CompanionFacts& facts, Progress progress) override {
    return companions_.ensure_companion_image(facts, std::move(progress));
  }
  EngineAwaitable<> ensure_companion(CompanionFacts& facts, Attachments attachments) override {
    return companions_.ensure_companion(facts, std::move(attachments));
  }
  EngineAwaitable<> start_companion(CompanionFacts& facts) override {
    return companions_.start_companion(facts);
  }
  EngineAwaitable<CompanionSeen> inspect_companion(CompanionFacts facts) override {
    return companions_.inspect_companion(std::move(facts));
  }
  EngineAwaitable<ProbeOutcome> probe_companion(CompanionFacts facts,
                                                std::chrono::milliseconds timeout) override {
    return companions_.probe_companion(std::move(facts), timeout);
  }
  EngineAwaitable<std::int64_t> start_companion_guest(CompanionFacts facts) override {
    return companions_.start_companion_guest(std::move(facts));
  }
  EngineAwaitable<std::string> companion_output(CompanionFacts facts) override {
    return companions_.companion_output(std::move(facts));
  }
  EngineAwaitable<> stop_companion(CompanionFacts facts) override {
    return companions_.stop_companion(std::move(facts));
  }
  EngineAwaitable<std::unique_ptr<ContainerLog>> open_log(ContainerId container,
                                                          LogQuery query) override;
  EngineAwaitable<ContainerUsage> measure(ContainerId container) override;

  void restored(const SandboxFacts& facts) override {
    if (facts.subnet) subnets_.take(*facts.subnet);
  }
  EngineAwaitable<std::optional<std::string>> publisher_of(v1::PortMapping port) override;
  asio::awaitable<std::string> remark_on_refusal() override;

  EngineAwaitable<> sweep(const SandboxClaims& claims) override {
    return orphans_.sweep(claims, seen_ ? seen_->id : std::string());
  }
  const std::vector<UnknownPrimary>& unknown_primaries() const override {
    return orphans_.unknown_primaries();
  }

  asio::awaitable<EngineDiagnosis> diagnose(EngineDiagnosisRequest request) override;

  asio::awaitable<void> shut_down() override;

 private:
  void engine_seen(const EngineIdentity& engine);
  void report(const EngineEvent& event, EngineListener& listener, const SandboxClaims& claims);
  void report_network(const EngineEvent& event, EngineListener& listener,
                      const SandboxClaims& claims);

  Logger log_;
  asio::any_io_executor blocking_;
  std::string socket_path_;
  ObjectOwner ours_;
  HostNetworkAccess host_;
  std::optional<EngineIdentity> seen_;  // the latest, reachable or not
  EngineListener* listener_ = nullptr;  // while watch() runs
  EngineClient client_;
  RegistryAuth registry_auth_;
  ImagePulls pulls_;
  SubnetPool subnets_;
  NetworkRemoval network_removal_;
  TaskGroup calls_;
  Workloads workloads_;
  Companions companions_;
  OrphanSweep orphans_;
};

}  // namespace agbox
