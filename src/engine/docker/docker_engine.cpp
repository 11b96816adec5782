// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/docker_engine.h"

#include <algorithm>
#include <chrono>

#include "async/run_blocking.h"
#include "engine/docker/api/event_watch.h"
#include "engine/docker/api/refusal.h"
#include "engine/docker/doctor/checks/images.h"
#include "engine/docker/doctor/engine_checks.h"
#include "engine/docker/doctor/full_disk.h"
#include "engine/docker/workload/docker_log.h"
#include "engine/docker/workload/unmet_request.h"
#include "model/object_names.h"
#include "model/spec/ports.h"

namespace agbox {

namespace {

// A client waits for it, and can do without.
constexpr std::chrono::seconds kHolderDeadline{1};

ReachableEngine reachable(const EngineIdentity& engine) {
  return {.id = engine.id,
          .title = title_of(engine),
          .cpus = engine.cpus,
          .root_directory = engine.root_directory,
          .disk_limit_shortcoming = disk_limit_shortcoming(engine)};
}

}  // namespace

DockerEngine::DockerEngine(const asio::any_io_executor& executor, asio::any_io_executor blocking,
                           DockerEngineOptions options, Logger log)
    : log_(std::move(log)),
      blocking_(std::move(blocking)),
      socket_path_(std::move(options.socket_path)),
      ours_{.instance = std::move(options.instance_id)},
      host_(std::move(options.host)),
      client_(executor,
              {.socket_path = socket_path_,
               .on_engine_seen = [this](const EngineIdentity& engine) { engine_seen(engine); },
               .patience = options.patience}),
      registry_auth_(std::move(options.environment)),
      pulls_(client_, registry_auth_, log_),
      subnets_(options.address_pool, bridge_prefix(ours_.instance), host_),
      network_removal_(client_, host_, blocking_, log_),
      calls_(executor),
      workloads_({.client = client_,
                  .pulls = pulls_,
                  .subnets = subnets_,
                  .network_removal = network_removal_,
                  .calls = calls_},
                 ours_.instance,
                 {.seccomp_profile = options.seccomp_profile,
                  .descriptor_limit = options.descriptor_limit}),
      companions_({.client = client_, .pulls = pulls_, .calls = calls_}, ours_.instance,
                  {.seccomp_profile = std::move(options.seccomp_profile),
                   .descriptor_limit = options.descriptor_limit}),
      orphans_(client_, network_removal_, ours_.instance, log_) {}

// --- events ---

void DockerEngine::engine_seen(const EngineIdentity& engine) {
  log_.info("engine is reachable", {{"engine_id", engine.id},
                                    {"engine_version", engine.version},
                                    {"api_version", engine.api.text()}});
  seen_ = engine;
  if (listener_ != nullptr) listener_->reachable(reachable(engine));
}

asio::awaitable<void> DockerEngine::watch(EngineListener& listener, const SandboxClaims& claims) {
  EventConsumer consumer{
      .reconcile_due =
          [this, &listener] {
            // The stream may use a connection of an existing session, which is not announced again.
            listener.reachable(reachable(*seen_));
            listener.reconcile_due();
          },
      .event = [this, &listener,
                &claims](const EngineEvent& event) { report(event, listener, claims); },
      .lost = [&listener](
                  const EngineError& error) { listener.unreachable(describe_unreachable(error)); }};
  // Not filtered by label: events of networks carry none.
  EventWatchOptions options{.filter = {.types = {"container", "network"},
                                       .actions = {"create", "start", "die", "oom", "unpause",
                                                   "health_status", "destroy"}}};
  listener_ = &listener;
  co_await watch_events(client_, std::move(consumer), log_, std::move(options));
  listener_ = nullptr;
}

void DockerEngine::report(const EngineEvent& event, EngineListener& listener,
                          const SandboxClaims& claims) {
  if (event.type == "network") return report_network(event, listener, claims);
  const auto sandbox = event.attributes.find(sandbox_label());
  if (!ours_.owns(event.attributes) || sandbox == event.attributes.end()) return;
  if (event.action == "start" || event.action == "destroy") {
    return listener.container_changed(sandbox->second);
  }
  if (event.action != "create") {
    const auto companion = companion_of(event.attributes);
    if (!companion) return listener.container_may_have_ended(sandbox->second);
    return listener.companion_may_have_changed(sandbox->second, *companion);
  }
  listener.object_created(sandbox->second);
  if (orphans_.is_orphan_container(claims, event.object_id, event.attributes)) {
    listener.sweep_due();
  }
}

// Network events carry no labels; identify the sandbox by name.
void DockerEngine::report_network(const EngineEvent& event, EngineListener& listener,
                                  const SandboxClaims& claims) {
  const auto name = event.attributes.find("name");
  if (event.action != "create" || name == event.attributes.end()) return;
  const auto sandbox_id = sandbox_of_network(name->second);
  if (!sandbox_id) return;
  listener.object_created(*sandbox_id);
  if (orphans_.is_orphan_network(claims, *sandbox_id)) listener.sweep_due();
}

// --- logs and usage ---

EngineAwaitable<ContainerUsage> DockerEngine::measure(ContainerId container) {
  return client_.measure_container(std::move(container.container_id),
                                   {.deadline = {}, .expected_engine = container.engine_id});
}

EngineAwaitable<std::unique_ptr<ContainerLog>> DockerEngine::open_log(ContainerId container,
                                                                      LogQuery query) {
  return open_container_log(client_, std::move(container), query);
}

// --- ports ---

EngineAwaitable<std::optional<std::string>> DockerEngine::publisher_of(v1::PortMapping port) {
  AGBOX_CO_TRY(containers, co_await client_.list_containers(
                               {}, {.deadline = kHolderDeadline, .expected_engine = {}}));
  const auto is_it = [&port](const ContainerListed::Port& published) {
    return published.host_port == port.host_port() &&
           published.protocol == protocol_name(port.protocol()) &&
           (published.host_address == kPublishAddress || published.host_address == "0.0.0.0");
  };
  for (const ContainerListed& container : containers) {
    if (std::ranges::any_of(container.ports, is_it)) co_return "container " + container.name;
  }
  co_return std::nullopt;
}

// --- diagnosis ---

asio::awaitable<std::string> DockerEngine::remark_on_refusal() {
  if (!seen_) co_return std::string();
  co_return co_await run_blocking(
      blocking_, [root = seen_->root_directory] { return full_disk_remark(root); });
}

asio::awaitable<EngineDiagnosis> DockerEngine::diagnose(EngineDiagnosisRequest request) {
  std::vector<std::string> images = ImagesCheck::names(request);
  auto engine = co_await ask_engine_report(client_, socket_path_, ours_.labels(), images);
  co_return run_engine_checks({.request = request,
                               .images = std::move(images),
                               .engine = std::move(engine),
                               .subnets = subnets_,
                               .orphans = orphans_,
                               .host = host_});
}

// --- shutdown ---

asio::awaitable<void> DockerEngine::shut_down() {
  calls_.cancel();
  co_await pulls_.stop();
  co_await calls_.join();
}

}  // namespace agbox
