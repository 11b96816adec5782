// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/workloads.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <chrono>
#include <optional>
#include <vector>

#include "engine/docker/all_of.h"
#include "engine/docker/step.h"
#include "engine/docker/workload/account_files.h"
#include "engine/docker/workload/container_loss.h"
#include "engine/docker/workload/container_settings.h"
#include "engine/docker/workload/stop_one.h"
#include "engine/docker/workload/unbroken_call.h"
#include "engine/docker/workload/unmet_request.h"
#include "model/network/sandbox_subnet.h"
#include "model/object_names.h"

namespace agbox {
namespace {

// The engine that the sandbox was created on, and no other.
CallOptions on_its_engine(const SandboxFacts& facts) {
  return {.deadline = {}, .expected_engine = facts.created_with.engine_id()};
}

store::v1::Container::Image kept_of(const ImageSeen& image) {
  store::v1::Container::Image kept;
  kept.mutable_entrypoint()->Assign(image.entrypoint.begin(), image.entrypoint.end());
  kept.set_user(image.user);
  kept.mutable_volumes()->Assign(image.volumes.begin(), image.volumes.end());
  return kept;
}

// A network that the engine is removing keeps its subnet, and is no longer listed. A create tries
// another subnet instead, but not forever.
constexpr std::size_t kUnlistedOverlapsForgiven = 2;

bool is_overlap(const EngineError& error) {
  return error.kind() == EngineErrorKind::Conflict && error.engine_text().contains("Pool overlaps");
}

// The subnets of all networks except the owner's.
std::vector<std::string> subnets_of_others(const std::vector<NetworkSeen>& networks,
                                           const ObjectOwner& owner) {
  std::vector<std::string> subnets;
  for (const NetworkSeen& network : networks) {
    if (owner.owns(network.labels)) continue;
    subnets.insert(subnets.end(), network.subnets.begin(), network.subnets.end());
  }
  return subnets;
}

std::unexpected<EngineError> gone(const std::string& what, const SandboxFacts& facts) {
  return engine_fail(EngineErrorKind::Refused,
                     what + " is gone, and a resume creates nothing; delete sandbox " +
                         facts.sandbox_id + " and create another");
}

}  // namespace

// --- creation ---

// Stores the image's settings: by the next start its name may refer to another image.
EngineAwaitable<> Workloads::ensure_image(SandboxFacts& facts, Engine::Progress progress) {
  const std::string image = facts.spec.create_spec.image();
  auto report = [&progress, &image](const PullProgress& pull) {
    progress(describe_pull(image, pull));
  };
  AGBOX_CO_TRY(seen, co_await step("create.image",
                                   pulls_.ensure_image(image, report, on_its_engine(facts))));
  *facts.containers[""].mutable_image() = kept_of(seen);
  co_return EngineResult<>{};
}

EngineAwaitable<> Workloads::ensure_workload(SandboxFacts& facts, Attachments attachments) {
  // A container's network must exist when it is started, not when it is created.
  using asio::experimental::awaitable_operators::operator&&;
  auto [network, primary] = co_await (ensure_network(facts) && ensure_primary(facts, attachments));
  co_return network ? primary : network;
}

// A repeated create keeps its subnet. Subnets that the engine gave to others, without a route on
// this host, are queried only if it refuses ours.
EngineAwaitable<> Workloads::ensure_network(SandboxFacts& facts) {
  const ObjectOwner owner = owner_of(facts);
  std::vector<std::string> occupied;
  std::vector<std::string> unlisted;  // refused, and no listed network explains it
  while (true) {
    if (!facts.subnet) {
      AGBOX_CO_TRY(subnet, subnets_.choose(occupied));
      facts.subnet = subnet.text();
    }
    auto call =
        client_.ensure_network(owner, network_settings(instance_id_, facts), on_its_engine(facts));
    const auto made = co_await step("create.network", unbroken(calls_, std::move(call)));
    if (made) {
      take_subnet_of(*made, facts);
      co_return EngineResult<>{};
    }
    if (!made.error().is_definite()) co_return std::unexpected(made.error());

    AGBOX_CO_TRY(networks,
                 co_await step("create.subnet", client_.list_networks({}, on_its_engine(facts))));
    occupied = subnets_of_others(networks, owner);
    if (!overlaps_any(*facts.subnet, occupied)) {
      const bool is_unlisted =
          is_overlap(made.error()) && unlisted.size() < kUnlistedOverlapsForgiven;
      if (!is_unlisted) co_return std::unexpected(made.error());
      unlisted.push_back(*facts.subnet);
    }
    occupied.insert(occupied.end(), unlisted.begin(), unlisted.end());
    subnets_.give_back(*facts.subnet);
    facts.subnet.reset();
  }
}

// The engine may have finished the network of an earlier attempt, which had another subnet.
void Workloads::take_subnet_of(const NetworkSeen& network, SandboxFacts& facts) {
  const bool has_ours = std::ranges::find(network.subnets, *facts.subnet) != network.subnets.end();
  if (has_ours || network.subnets.empty()) return;
  subnets_.give_back(*facts.subnet);
  facts.subnet = network.subnets.front();
  subnets_.take(*facts.subnet);
}

EngineAwaitable<> Workloads::ensure_primary(SandboxFacts& facts, const Attachments& attachments) {
  auto call = client_.ensure_container(
      owner_of(facts), primary_settings(instance_id_, facts, attachments, hardening_),
      on_its_engine(facts));
  const auto id = co_await step("create.container", unbroken(calls_, std::move(call)));
  if (!id) co_return std::unexpected(in_terms_of(facts.spec, id.error()));
  facts.containers[""].set_container_id(*id);
  co_return EngineResult<>{};
}

// --- start and stop ---

EngineAwaitable<> Workloads::require_workload(const SandboxFacts& facts) {
  const std::string name = network_name(facts.sandbox_id);
  AGBOX_CO_TRY(network,
               co_await step("resume.network",
                             client_.find_network_of(owner_of(facts), name, on_its_engine(facts))));
  if (!network) co_return gone("network " + name, facts);
  const std::string id = facts.primary_id();
  AGBOX_CO_TRY(container,
               co_await step("resume.container",
                             client_.find_container_of(owner_of(facts), id, on_its_engine(facts))));
  if (!container) {
    co_return gone(
        "container " + primary_container_name(facts.sandbox_id) + " (id " + id.substr(0, 12) + ")",
        facts);
  }
  // Started by an interrupted attempt, or by another process: its guest may have a secret that we
  // do not know.
  if (!container->is_up()) co_return EngineResult<>{};
  co_return co_await step(
      "resume.stop", stop_one(client_, container->id, facts.is_paused(), on_its_engine(facts)));
}

EngineAwaitable<> Workloads::start(SandboxFacts& facts) {
  const std::string id = facts.primary_id();
  AGBOX_CO_TRY_VOID(
      co_await step("start.account_files", check_account_files(client_, id, on_its_engine(facts))));
  auto call = client_.start_container(id, on_its_engine(facts));
  const auto started = co_await step("start.container", unbroken(calls_, std::move(call)));
  if (!started) co_return std::unexpected(in_terms_of(facts.spec, started.error()));
  AGBOX_CO_TRY(seen,
               co_await step("start.inspect", client_.inspect_container(id, on_its_engine(facts))));
  facts.containers[""].set_engine_started_at(start_mark(seen));
  co_return EngineResult<>{};
}

EngineAwaitable<SandboxInspection> Workloads::inspect(const SandboxFacts& facts) {
  auto found = co_await step("inspect.container",
                             client_.find_container(facts.primary_id(), on_its_engine(facts)));
  if (!found) co_return std::unexpected(asked_again(found.error()));
  const std::optional<ContainerSeen>& container = *found;
  const auto kept = facts.containers.find("");
  const store::v1::Container none;
  SandboxInspection inspection = judge_primary(kept == facts.containers.end() ? none : kept->second,
                                               container, owner_of(facts));
  const std::string name = network_name(facts.sandbox_id);
  if (container && container->is_up()) {
    inspection.seen.has_network = container->networks.contains(name);
  } else if (container) {
    AGBOX_CO_TRY(network,
                 co_await step("inspect.network", client_.find_network_of(owner_of(facts), name,
                                                                          on_its_engine(facts))));
    inspection.seen.has_network = network.has_value();
  }
  co_return inspection;
}

EngineAwaitable<> Workloads::stop(const SandboxFacts& facts) {
  std::vector<EngineAwaitable<>> stops;
  for (const auto& [name, container] : facts.containers) {
    stops.push_back(
        stop_one(client_, container.container_id(), facts.is_paused(), on_its_engine(facts)));
  }
  return all_of(client_.executor(), std::move(stops));
}

EngineAwaitable<> Workloads::pause(const SandboxFacts& facts) {
  std::vector<EngineAwaitable<>> pauses;
  for (const auto& [name, container] : facts.containers) {
    const std::string& id = container.container_id();
    // A companion may have ended, and its sandbox runs on.
    auto call = name.empty() ? client_.pause_container(id, on_its_engine(facts))
                             : client_.pause_if_running(id, on_its_engine(facts));
    pauses.push_back(unbroken(calls_, std::move(call)));
  }
  co_return co_await step("pause.container", all_of(client_.executor(), std::move(pauses)));
}

EngineAwaitable<> Workloads::unpause(const SandboxFacts& facts) {
  std::vector<EngineAwaitable<>> unpauses;
  for (const auto& [name, container] : facts.containers) {
    auto call = client_.unpause_if_there(container.container_id(), on_its_engine(facts));
    unpauses.push_back(unbroken(calls_, std::move(call)));
  }
  co_return co_await step("unpause.container", all_of(client_.executor(), std::move(unpauses)));
}

EngineAwaitable<> Workloads::stop_all(const SandboxFacts& facts) {
  const ObjectOwner owner = owner_of(facts);
  AGBOX_CO_TRY(listed, co_await step("halt.list", client_.list_containers(owner.labels(),
                                                                          on_its_engine(facts))));
  std::vector<EngineAwaitable<>> stops;
  for (const ContainerListed& container : listed) {
    if (!owner.owns(container.labels)) continue;
    stops.push_back(stop_one(client_, container.id, facts.is_paused(), on_its_engine(facts)));
  }
  co_return co_await step("halt.stop", all_of(client_.executor(), std::move(stops)));
}

// --- removal ---

EngineAwaitable<> Workloads::remove(SandboxFacts& facts) {
  // A network is removed while its former members end; that saves a third of the time.
  AGBOX_CO_TRY_VOID(co_await step(
      "delete.detach", client_.detach_containers_of(owner_of(facts), network_name(facts.sandbox_id),
                                                    on_its_engine(facts))));
  using asio::experimental::awaitable_operators::operator&&;
  const auto [removed, early] =
      co_await (remove_containers(facts) && remove_detached_networks(facts));
  if (!removed) co_return removed;
  // Retry networks that were refused because a member could not be detached: it is gone now.
  AGBOX_CO_TRY_VOID(co_await step(
      "delete.networks", network_removal_.remove_networks(owner_of(facts), on_its_engine(facts))));
  facts.containers.clear();
  if (facts.subnet) subnets_.give_back(*facts.subnet);
  facts.subnet.reset();
  co_return EngineResult<>{};
}

EngineAwaitable<> Workloads::remove_containers(const SandboxFacts& facts) {
  co_return co_await step("delete.containers",
                          client_.remove_containers_of(owner_of(facts), on_its_engine(facts)));
}

EngineAwaitable<> Workloads::remove_detached_networks(const SandboxFacts& facts) {
  co_return co_await step("delete.detached_networks",
                          client_.remove_networks_of(owner_of(facts), on_its_engine(facts)));
}

}  // namespace agbox
