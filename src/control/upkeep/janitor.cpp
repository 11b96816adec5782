// SPDX-License-Identifier: Apache-2.0
#include "control/upkeep/janitor.h"

#include <algorithm>
#include <utility>

#include "async/await_callback.h"
#include "async/run_blocking.h"
#include "control/sandbox/operations/network_removal.h"
#include "control/sandbox/operations/step.h"
#include "isolation/netlink/host_link.h"
#include "model/object_names.h"

namespace agbox {
namespace {

std::string value_of(const EngineLabels& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

// Those of the ids that were taken once and are purged, as something to await.
asio::awaitable<Result<std::vector<std::string>>> read_purged(Store& store,
                                                              std::vector<std::string> ids) {
  return await_callback<Result<std::vector<std::string>>>(
      [&store, ids = std::move(ids)](auto done) mutable {
        store.read_purged(std::move(ids), std::move(done));
      });
}

}  // namespace

asio::awaitable<OperationResult<>> Janitor::sweep_once() {
  const CallOptions options{.deadline = {}, .expected_engine = services_.engine_now->id};
  AGBOX_CO_TRY_VOID(co_await sweep_containers(options));
  AGBOX_CO_TRY_VOID(co_await sweep_networks(options));
  AGBOX_CO_TRY_VOID(co_await sweep_bridges(options));
  AGBOX_CO_TRY_VOID(co_await sweep_guest_directories());
  co_return co_await sweep_exec_logs();
}

// What the engine lists was made before now, by a sandbox that the directory had before it made
// anything. So a claim that is asked for after the list is never too old.
asio::awaitable<OperationResult<>> Janitor::sweep_containers(CallOptions options) {
  const ObjectOwner ours{.instance = services_.store.instance_id()};
  AGBOX_CO_TRY(listed, co_await step("janitor.containers",
                                     services_.engine.list_containers(ours.labels(), options)));
  unknown_primaries_.clear();
  for (const ContainerListed& container : listed) {
    const auto judged = judge(container.id, container.labels);
    if (!judged) continue;
    const auto& [sandbox_id, judgement] = *judged;
    if (judgement.fate == Fate::Report) {
      report({sandbox_id, container.id, container.name}, judgement.reason);
    }
    if (judgement.fate != Fate::Remove) continue;
    log_.warn(
        "orphaned container is removed",
        {{"sandbox_id", sandbox_id}, {"container", container.name}, {"reason", judgement.reason}});
    const ObjectOwner owner{.instance = ours.instance, .sandbox_id = sandbox_id};
    AGBOX_CO_TRY_VOID(
        allow(co_await step("janitor.remove_container", services_.engine.remove_owned_container(
                                                            owner, container.id, options))));
  }
  co_return OperationResult<>{};
}

std::optional<Janitor::Judged> Janitor::judge(const std::string& container_id,
                                              const EngineLabels& labels) const {
  const ObjectOwner ours{.instance = services_.store.instance_id()};
  std::string sandbox_id = value_of(labels, sandbox_label());
  if (!ours.owns(labels) || sandbox_id.empty()) return std::nullopt;
  // What it does not say is taken for the worse.
  const bool is_primary = value_of(labels, component_label()) != "companion";
  Judgement judgement = judge_container(claims_.of(sandbox_id), container_id, is_primary);
  return Judged{.sandbox_id = std::move(sandbox_id), .judgement = std::move(judgement)};
}

std::vector<UnknownPrimary> Janitor::unknown_primaries_among(
    const std::vector<ContainerListed>& listed) const {
  std::vector<UnknownPrimary> unknown;
  for (const ContainerListed& container : listed) {
    const auto judged = judge(container.id, container.labels);
    if (judged && judged->judgement.fate == Fate::Report) {
      unknown.push_back({judged->sandbox_id, container.id, container.name});
    }
  }
  return unknown;
}

asio::awaitable<OperationResult<>> Janitor::sweep_networks(CallOptions options) {
  const ObjectOwner ours{.instance = services_.store.instance_id()};
  AGBOX_CO_TRY(listed, co_await step("janitor.networks",
                                     services_.engine.list_networks(ours.labels(), options)));
  for (const NetworkSeen& network : listed) {
    const std::string sandbox_id = value_of(network.labels, sandbox_label());
    if (!ours.owns(network.labels) || sandbox_id.empty()) continue;
    const Judgement judged = judge_network(claims_.of(sandbox_id), is_unknown_primarys(sandbox_id));
    if (judged.fate != Fate::Remove) continue;
    log_.warn("orphaned network is removed",
              {{"sandbox_id", sandbox_id}, {"network", network.name}, {"reason", judged.reason}});
    // One that has members is refused: it is in use, and stays.
    const ObjectOwner owner{.instance = ours.instance, .sandbox_id = sandbox_id};
    AGBOX_CO_TRY_VOID(allow(
        co_await step("janitor.remove_network", remove_networks(services_, owner, options, log_))));
  }
  co_return OperationResult<>{};
}

// An engine that died while it made a network may know it only where its API does not look: then
// it makes the bridge anew at each of its starts.
asio::awaitable<OperationResult<>> Janitor::sweep_bridges(CallOptions options) {
  const std::string& instance = services_.store.instance_id();
  AGBOX_CO_TRY(bridges,
               co_await step("janitor.links",
                             run_blocking(services_.blocking, [prefix = bridge_prefix(instance)] {
                               return find_links(prefix);
                             })));
  for (const std::string& sandbox_id : claims_.sandbox_ids()) {
    if (claims_.of(sandbox_id).kind == SandboxClaim::Kind::Deleted) continue;
    std::erase(bridges, bridge_name(instance, sandbox_id));
  }
  co_return co_await step("janitor.bridges", remove_forgotten_bridges(services_, std::move(bridges),
                                                                      std::move(options), log_));
}

asio::awaitable<OperationResult<>> Janitor::sweep_guest_directories() {
  auto claimed = [this] {
    std::set<std::string> sandbox_ids;
    for (const std::string& sandbox_id : claims_.sandbox_ids()) {
      // That of one that is deleted went before the end was reported.
      const bool is_deleted = claims_.of(sandbox_id).kind == SandboxClaim::Kind::Deleted;
      if (!is_deleted) sandbox_ids.insert(sandbox_id);
    }
    for (const UnknownPrimary& primary : unknown_primaries_) sandbox_ids.insert(primary.sandbox_id);
    return sandbox_ids;
  };
  AGBOX_CO_TRY(removed, co_await step("janitor.guest_directories",
                                      services_.place.remove_unclaimed(std::move(claimed))));
  for (const std::string& folder : removed) {
    log_.warn("orphaned guest folder is removed",
              {{"folder", folder}, {"reason", "no sandbox of this store has it"}});
  }
  co_return OperationResult<>{};
}

// The root may be a folder of the user's own, with anything in it. A folder is ours if its name is
// the id of a sandbox that this store once had; it is left over if that is purged.
asio::awaitable<OperationResult<>> Janitor::sweep_exec_logs() {
  AGBOX_CO_TRY(unclaimed, co_await step("janitor.outputs", services_.place.list_outputs()));
  for (const std::string& sandbox_id : claims_.sandbox_ids()) std::erase(unclaimed, sandbox_id);
  if (unclaimed.empty()) co_return OperationResult<>{};
  AGBOX_CO_TRY(purged, co_await step("janitor.purged", read_purged(services_.store, unclaimed)));
  for (const std::string& sandbox_id : purged) {
    log_.warn("orphaned output folder is removed",
              {{"sandbox_id", sandbox_id}, {"reason", "its sandbox is purged"}});
    AGBOX_CO_TRY_VOID(
        allow(co_await step("janitor.remove_output",
                            services_.place.remove_output(sandbox_id, services_.created_with))));
  }
  co_return OperationResult<>{};
}

OperationResult<> Janitor::allow(const OperationResult<>& removed) const {
  if (removed || !is_definite(removed.error())) return removed;
  log_.warn("an orphan stays", {{"error", removed.error().message()}});
  return {};
}

void Janitor::report(UnknownPrimary primary, const std::string& reason) {
  log_.warn("unknown primary container is left alone; remove it by hand if it is not needed",
            {{"sandbox_id", primary.sandbox_id},
             {"container", primary.container_name},
             {"reason", reason}});
  unknown_primaries_.push_back(std::move(primary));
}

bool Janitor::is_unknown_primarys(const std::string& sandbox_id) const {
  return std::ranges::any_of(unknown_primaries_, [&sandbox_id](const UnknownPrimary& primary) {
    return primary.sandbox_id == sandbox_id;
  });
}

}  // namespace agbox
