// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/objects/orphan_sweep.h"

#include <algorithm>

#include "engine/docker/step.h"
#include "model/object_names.h"

namespace agbox {
namespace {

std::string value_of(const EngineLabels& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

}  // namespace

EngineAwaitable<> OrphanSweep::sweep(const SandboxClaims& claims, std::string engine_id) {
  const CallOptions options{.deadline = {}, .expected_engine = std::move(engine_id)};
  AGBOX_CO_TRY_VOID(co_await sweep_containers(claims, options));
  AGBOX_CO_TRY_VOID(co_await sweep_networks(claims, options));
  co_return co_await sweep_bridges(claims, options);
}

// A sandbox is known before anything is created for it. So a claim that is read after the engine's
// list is never outdated.
EngineAwaitable<> OrphanSweep::sweep_containers(const SandboxClaims& claims, CallOptions options) {
  AGBOX_CO_TRY(listed, co_await step("janitor.containers",
                                     client_.list_containers(ours_.labels(), options)));
  unknown_primaries_.clear();
  for (const ContainerListed& container : listed) {
    const auto judged = judge(claims, container.id, container.labels);
    if (!judged) continue;
    const auto& [sandbox_id, judgement] = *judged;
    if (judgement.fate == Fate::Report) {
      report({sandbox_id, container.id, container.name}, judgement.reason);
    }
    if (judgement.fate != Fate::Remove) continue;
    log_.warn(
        "orphaned container is removed",
        {{"sandbox_id", sandbox_id}, {"container", container.name}, {"reason", judgement.reason}});
    AGBOX_CO_TRY_VOID(allow(
        co_await step("janitor.remove_container",
                      client_.remove_owned_container(owner(sandbox_id), container.id, options))));
  }
  co_return EngineResult<>{};
}

EngineAwaitable<> OrphanSweep::sweep_networks(const SandboxClaims& claims, CallOptions options) {
  AGBOX_CO_TRY(listed,
               co_await step("janitor.networks", client_.list_networks(ours_.labels(), options)));
  for (const NetworkSeen& network : listed) {
    const std::string sandbox_id = value_of(network.labels, sandbox_label());
    if (!ours_.owns(network.labels) || sandbox_id.empty()) continue;
    const Judgement judged =
        judge_network(claims.claim_of(sandbox_id), has_unknown_primary(sandbox_id));
    if (judged.fate != Fate::Remove) continue;
    log_.warn("orphaned network is removed",
              {{"sandbox_id", sandbox_id}, {"network", network.name}, {"reason", judged.reason}});
    // One that has members is refused: it is in use, and stays.
    AGBOX_CO_TRY_VOID(allow(co_await step(
        "janitor.remove_network", network_removal_.remove_networks(owner(sandbox_id), options))));
  }
  co_return EngineResult<>{};
}

// An engine that died while creating a network may not list it, and yet create its bridge again on
// each start. Only those of our deleted sandboxes: another daemon may use the same prefix.
EngineAwaitable<> OrphanSweep::sweep_bridges(const SandboxClaims& claims, CallOptions options) {
  AGBOX_CO_TRY(existing,
               co_await step("janitor.links", network_removal_.find_bridges(ours_.instance)));
  std::vector<std::string> bridges;
  for (const std::string& sandbox_id : claims.sandbox_ids()) {
    if (claims.claim_of(sandbox_id).kind != SandboxClaim::Kind::Deleted) continue;
    std::string bridge = bridge_name(ours_.instance, sandbox_id);
    if (std::ranges::find(existing, bridge) != existing.end()) bridges.push_back(std::move(bridge));
  }
  co_return co_await step("janitor.bridges", network_removal_.remove_forgotten_bridges(
                                                 std::move(bridges), std::move(options), log_));
}

std::optional<OrphanSweep::Judged> OrphanSweep::judge(const SandboxClaims& claims,
                                                      const std::string& container_id,
                                                      const EngineLabels& labels) const {
  std::string sandbox_id = value_of(labels, sandbox_label());
  if (!ours_.owns(labels) || sandbox_id.empty()) return std::nullopt;
  // A missing label means primary: never remove it by mistake.
  const bool is_primary = !companion_of(labels).has_value();
  Judgement judgement = judge_container(claims.claim_of(sandbox_id), container_id, is_primary);
  return Judged{.sandbox_id = std::move(sandbox_id), .judgement = std::move(judgement)};
}

std::vector<UnknownPrimary> OrphanSweep::unknown_primaries_among(
    const SandboxClaims& claims, const std::vector<ContainerListed>& listed) const {
  std::vector<UnknownPrimary> unknown;
  for (const ContainerListed& container : listed) {
    const auto judged = judge(claims, container.id, container.labels);
    if (judged && judged->judgement.fate == Fate::Report) {
      unknown.push_back({judged->sandbox_id, container.id, container.name});
    }
  }
  return unknown;
}

bool OrphanSweep::is_orphan_container(const SandboxClaims& claims, const std::string& container_id,
                                      const EngineLabels& labels) const {
  const auto judged = judge(claims, container_id, labels);
  return judged && judged->judgement.fate != Fate::Keep;
}

bool OrphanSweep::is_orphan_network(const SandboxClaims& claims,
                                    const std::string& sandbox_id) const {
  const SandboxClaim claim = claims.claim_of(sandbox_id);
  // Another instance's network: instances share the naming scheme.
  if (claim.kind == SandboxClaim::Kind::Unknown) return false;
  return judge_network(claim, has_unknown_primary(sandbox_id)).fate == Fate::Remove;
}

EngineResult<> OrphanSweep::allow(EngineResult<> removed) const {
  if (removed || !removed.error().is_definite()) return removed;
  log_.warn("an orphan stays", {{"error", removed.error().message()}});
  return {};
}

void OrphanSweep::report(UnknownPrimary primary, const std::string& reason) {
  log_.warn("unknown primary container is left alone; remove it by hand if it is not needed",
            {{"sandbox_id", primary.sandbox_id},
             {"container", primary.container_name},
             {"reason", reason}});
  unknown_primaries_.push_back(std::move(primary));
}

bool OrphanSweep::has_unknown_primary(const std::string& sandbox_id) const {
  return std::ranges::find(unknown_primaries_, sandbox_id, &UnknownPrimary::sandbox_id) !=
         unknown_primaries_.end();
}

}  // namespace agbox
