// SPDX-License-Identifier: Apache-2.0
// Creates and removes our objects. Everything here can be repeated: after a crash, or if the engine
// did it and its answer was lost. Objects without our labels are never touched.
#include <algorithm>
#include <chrono>

#include "async/retry_timer.h"
#include "engine/docker/all_of.h"
#include "engine/docker/api/engine_client.h"
#include "model/network/sandbox_subnet.h"

namespace agbox {

namespace {

using namespace std::chrono_literals;

// A container's files cannot be removed while they are mounted. The mount may be in a namespace
// that was created just now and will soon release them, so retry for a second or two.
constexpr int kBusyAttempts = 6;
constexpr auto kFirstBusyWait = 50ms;
constexpr auto kLongestBusyWait = 1000ms;

bool is_busy(const EngineError& error) {
  // A conflict that is left after a wait: the removal that was in progress has failed.
  if (error.kind() == EngineErrorKind::Conflict) return true;
  return error.kind() == EngineErrorKind::Refused &&
         error.engine_text().contains("device or resource busy");
}

// The engine waits ten seconds for the end of a container that it kills. The kernel takes longer to
// release millions of objects that its processes hold.
bool is_dying(const EngineError& error) {
  return error.kind() == EngineErrorKind::Refused && error.engine_text().contains("ould not kill");
}

// The engine lists an object only after creating it. Until then a network already occupies its
// subnet and its bridge, and a container its name. This lasts a moment, if a daemon was killed
// during its request.
constexpr int kUnseenAttempts = 6;
constexpr auto kFirstUnseenWait = 100ms;
constexpr auto kLongestUnseenWait = 1000ms;

bool explains_refusal(const std::vector<NetworkSeen>& listed, const NetworkSpec& spec) {
  return std::ranges::any_of(listed, [&spec](const NetworkSeen& network) {
    return (!spec.bridge_name.empty() && network.bridge_name == spec.bridge_name) ||
           overlaps_any(spec.subnet, network.subnets);
  });
}

void add_labels(EngineLabels& labels, const ObjectOwner& owner) {
  for (const auto& [key, value] : owner.labels()) labels[key] = value;
}

EngineError taken(std::string_view what, const std::string& name, const std::string& id) {
  return {EngineErrorKind::Conflict, std::string(what) + " " + name + " exists already (id " +
                                         id.substr(0, 12) +
                                         ") and is not ours; remove or rename it"};
}

bool has_all(const EngineLabels& labels, const EngineLabels& wanted) {
  return std::ranges::all_of(wanted, [&labels](const auto& label) {
    const auto found = labels.find(label.first);
    return found != labels.end() && found->second == label.second;
  });
}

}  // namespace

EngineAwaitable<NetworkSeen> EngineClient::ensure_network(ObjectOwner owner, NetworkSpec spec,
                                                          CallOptions options) {
  add_labels(spec.labels, owner);
  // Even an engine that allows two networks of one name refuses the second one its subnet.
  RetryTimer timer(executor(), kFirstUnseenWait, kLongestUnseenWait);
  for (int attempt = 1;; ++attempt) {
    EngineResult<std::string> created = co_await create_network(spec, options);
    if (created) co_return co_await inspect_network(*created, options);
    if (created.error().kind() != EngineErrorKind::Conflict) {
      co_return std::unexpected(std::move(created.error()));
    }
    AGBOX_CO_TRY(listed, co_await list_networks({}, options));
    const NetworkSeen* in_the_way = nullptr;
    for (NetworkSeen& network : listed) {
      if (network.name == spec.name && owner.owns(network.labels)) co_return std::move(network);
      if (network.name == spec.name) in_the_way = &network;
    }
    if (in_the_way) co_return std::unexpected(taken("network", spec.name, in_the_way->id));
    if (explains_refusal(listed, spec) || attempt == kUnseenAttempts || !co_await timer.wait()) {
      co_return std::unexpected(std::move(created.error()));
    }
  }
}

EngineAwaitable<std::string> EngineClient::ensure_container(ObjectOwner owner, ContainerSpec spec,
                                                            CallOptions options) {
  add_labels(spec.labels, owner);
  AGBOX_CO_TRY(found, co_await create_or_find(spec, options));
  if (!owner.owns(found.labels)) {
    co_return std::unexpected(taken("container", spec.name, found.id));
  }
  co_return std::move(found.id);
}

EngineAwaitable<std::string> EngineClient::ensure_container_with(ObjectOwner owner,
                                                                 EngineLabels key,
                                                                 ContainerSpec spec,
                                                                 std::string other_name,
                                                                 CallOptions options) {
  add_labels(key, owner);
  for (const auto& [name, value] : key) spec.labels[name] = value;
  const auto is_it = [&owner, &key](const EngineLabels& labels) {
    return owner.owns(labels) && has_all(labels, key);
  };
  // By labels first: it may have the other name, although its own is free by now.
  AGBOX_CO_TRY(listed, co_await list_containers(key, options));
  for (ContainerListed& container : listed) {
    if (is_it(container.labels)) co_return std::move(container.id);
  }
  AGBOX_CO_TRY(found, co_await create_or_find(spec, options));
  if (is_it(found.labels)) co_return std::move(found.id);
  const ObjectOwner instance{.instance = owner.instance};
  if (!instance.owns(found.labels)) {
    co_return std::unexpected(taken("container", spec.name, found.id));
  }
  spec.name = std::move(other_name);
  AGBOX_CO_TRY(second, co_await create_or_find(spec, options));
  if (is_it(second.labels)) co_return std::move(second.id);
  co_return std::unexpected(taken("container", spec.name, second.id));
}

EngineAwaitable<EngineClient::NamedContainer> EngineClient::create_or_find(ContainerSpec spec,
                                                                           CallOptions options) {
  RetryTimer timer(executor(), kFirstUnseenWait, kLongestUnseenWait);
  for (int attempt = 1;; ++attempt) {
    EngineResult<std::string> created = co_await create_container(spec, options);
    if (created) co_return NamedContainer{.id = std::move(*created), .labels = spec.labels};
    if (created.error().kind() != EngineErrorKind::Conflict) {
      co_return std::unexpected(std::move(created.error()));
    }
    // Container names are unique, so the holder of the name is the conflicting one.
    AGBOX_CO_TRY(holder, co_await find_container(spec.name, options));
    if (!holder && attempt < kUnseenAttempts && co_await timer.wait()) continue;
    if (!holder || holder->name != spec.name) {
      co_return std::unexpected(std::move(created.error()));
    }
    co_return NamedContainer{.id = std::move(holder->id), .labels = std::move(holder->labels)};
  }
}

EngineAwaitable<std::optional<NetworkSeen>> EngineClient::find_network_of(ObjectOwner owner,
                                                                          std::string name,
                                                                          CallOptions options) {
  AGBOX_CO_TRY(listed, co_await list_networks(owner.labels(), options));
  for (NetworkSeen& network : listed) {
    if (network.name == name && owner.owns(network.labels)) co_return std::move(network);
  }
  co_return std::nullopt;
}

EngineAwaitable<std::optional<ContainerSeen>> EngineClient::find_container(std::string id,
                                                                           CallOptions options) {
  if (id.empty()) co_return std::nullopt;
  EngineResult<ContainerSeen> seen = co_await inspect_container(std::move(id), std::move(options));
  if (!seen && seen.error().kind() == EngineErrorKind::NotFound) co_return std::nullopt;
  if (!seen) co_return std::unexpected(std::move(seen.error()));
  co_return std::move(*seen);
}

EngineAwaitable<std::optional<ContainerSeen>> EngineClient::find_container_of(ObjectOwner owner,
                                                                              std::string id,
                                                                              CallOptions options) {
  AGBOX_CO_TRY(seen, co_await find_container(std::move(id), std::move(options)));
  if (seen && !owner.owns(seen->labels)) {
    co_return engine_fail(EngineErrorKind::Conflict, "container " + seen->name + " is not ours");
  }
  co_return std::move(seen);
}

EngineAwaitable<> EngineClient::stop_if_there(std::string id, std::chrono::seconds grace,
                                              CallOptions options) {
  if (id.empty()) co_return EngineResult<>{};
  EngineResult<> stopped = co_await stop_container(std::move(id), grace, std::move(options));
  if (!stopped && stopped.error().kind() == EngineErrorKind::NotFound) co_return EngineResult<>{};
  co_return stopped;
}

EngineAwaitable<> EngineClient::kill_if_there(std::string id, CallOptions options) {
  if (id.empty()) co_return EngineResult<>{};
  EngineResult<> killed = co_await kill_container(std::move(id), std::move(options));
  const bool is_over = !killed && (killed.error().kind() == EngineErrorKind::NotFound ||
                                   killed.error().kind() == EngineErrorKind::Conflict);
  if (is_over) co_return EngineResult<>{};
  co_return killed;
}

EngineAwaitable<> EngineClient::pause_if_running(std::string id, CallOptions options) {
  if (id.empty()) co_return EngineResult<>{};
  EngineResult<> done = co_await pause_container(id, options);
  if (done || !done.error().is_definite()) co_return done;
  AGBOX_CO_TRY(seen, co_await find_container(std::move(id), std::move(options)));
  if (!seen || !seen->is_up()) co_return EngineResult<>{};
  co_return done;
}

EngineAwaitable<> EngineClient::unpause_if_there(std::string id, CallOptions options) {
  if (id.empty()) co_return EngineResult<>{};
  EngineResult<> done = co_await unpause_container(std::move(id), std::move(options));
  if (!done && done.error().kind() == EngineErrorKind::NotFound) co_return EngineResult<>{};
  co_return done;
}

// A removal goes on in the engine, whether its caller waits or not. So it is awaited for longer
// than any other call, but not forever.
EngineAwaitable<> EngineClient::force_remove(std::string id, CallOptions options) {
  const auto patience = transport_.patience().removal;
  const auto limit = std::chrono::steady_clock::now() + patience;
  RetryTimer timer(executor(), kFirstBusyWait, kLongestBusyWait);
  for (int attempts = 1;;) {
    EngineResult<> removed = co_await force_remove_once(id, limit, options);
    if (removed) co_return removed;
    const bool is_under_way =
        removed.error().kind() == EngineErrorKind::TimedOut || is_dying(removed.error());
    if (is_under_way && std::chrono::steady_clock::now() >= limit) {
      co_return std::unexpected(removed.error().within(
          "not removed within " +
          std::to_string(std::chrono::ceil<std::chrono::seconds>(patience).count()) + " s"));
    }
    const bool is_worth_a_try =
        is_under_way || (is_busy(removed.error()) && attempts < kBusyAttempts);
    if (!is_worth_a_try || !co_await timer.wait()) co_return removed;
    if (!is_under_way) ++attempts;
  }
}

EngineAwaitable<> EngineClient::force_remove_once(std::string id,
                                                  std::chrono::steady_clock::time_point limit,
                                                  CallOptions options) {
  EngineResult<> removed =
      co_await remove_container(id, {.force = true, .with_volumes = true}, options);
  if (removed || removed.error().kind() == EngineErrorKind::NotFound) co_return EngineResult<>{};
  const bool is_being_removed = removed.error().kind() == EngineErrorKind::Conflict;
  if (!is_being_removed && !is_dying(removed.error())) co_return removed;
  const auto left = limit - std::chrono::steady_clock::now();
  options.deadline = std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left), 1ms);
  EngineResult<> over =
      co_await (is_being_removed ? wait_until_removed(id, options) : wait_until_ended(id, options));
  if (is_being_removed && over) co_return over;
  if (!over && over.error().kind() == EngineErrorKind::NotFound) co_return EngineResult<>{};
  if (!over && over.error().kind() == EngineErrorKind::TimedOut) co_return over;
  co_return removed;
}

EngineAwaitable<> EngineClient::remove_owned_container(ObjectOwner owner, std::string id,
                                                       CallOptions options) {
  AGBOX_CO_TRY(seen, co_await find_container_of(std::move(owner), std::move(id), options));
  if (!seen) co_return EngineResult<>{};
  co_return co_await force_remove(seen->id, options);
}

EngineAwaitable<> EngineClient::detach(std::string container_id, std::string network,
                                       CallOptions options) {
  EngineResult<> detached =
      co_await disconnect_network(std::move(network), std::move(container_id), std::move(options));
  if (detached) co_return EngineResult<>{};
  switch (detached.error().kind()) {
    case EngineErrorKind::NotFound:
    case EngineErrorKind::Conflict:
    case EngineErrorKind::Refused:   // gone, being removed, or never connected
    case EngineErrorKind::TimedOut:  // its removal fails or not
      co_return EngineResult<>{};
    case EngineErrorKind::Unavailable:
    case EngineErrorKind::Unfit:
    case EngineErrorKind::Garbled:
    case EngineErrorKind::Unsafe:
    case EngineErrorKind::PortInUse:
    case EngineErrorKind::Cancelled:
      break;
  }
  co_return detached;
}

EngineAwaitable<> EngineClient::detach_containers_of(ObjectOwner owner, std::string network,
                                                     CallOptions options) {
  AGBOX_CO_TRY(listed, co_await list_containers(owner.labels(), options));
  std::vector<EngineAwaitable<>> detached;
  for (const ContainerListed& container : listed) {
    if (!owner.owns(container.labels) || container.status != "running") continue;
    detached.push_back(detach(container.id, network, options));
  }
  co_return co_await all_of(executor(), std::move(detached));
}

EngineAwaitable<> EngineClient::remove_containers_of(ObjectOwner owner, CallOptions options) {
  AGBOX_CO_TRY(listed, co_await list_containers(owner.labels(), options));
  std::vector<EngineAwaitable<>> removals;
  for (const ContainerListed& container : listed) {
    // The engine's filter is not trusted with other people's containers.
    if (owner.owns(container.labels)) removals.push_back(force_remove(container.id, options));
  }
  co_return co_await all_of(executor(), std::move(removals));
}

// An engine that could not record the end of a container, because its disk was full, keeps the
// container's endpoint and then refuses to remove the network.
EngineAwaitable<> EngineClient::remove_stale_endpoints(std::string network_id,
                                                       CallOptions options) {
  AGBOX_CO_TRY(network, co_await inspect_network(network_id, options));
  for (const auto& [container_id, name] : network.members) {
    AGBOX_CO_TRY(container, co_await find_container(container_id, options));
    if (container) continue;
    AGBOX_CO_TRY_VOID(
        co_await disconnect_network(network_id, name, options, Disconnect::StaleEndpoint));
  }
  co_return EngineResult<>{};
}

EngineAwaitable<> EngineClient::remove_if_there(std::string network_id, CallOptions options) {
  EngineResult<> removed = co_await remove_network(network_id, options);
  if (!removed && removed.error().kind() == EngineErrorKind::Conflict &&
      co_await remove_stale_endpoints(network_id, options)) {
    removed = co_await remove_network(network_id, options);
  }
  if (!removed && removed.error().kind() == EngineErrorKind::NotFound) co_return EngineResult<>{};
  co_return removed;
}

EngineAwaitable<> EngineClient::remove_networks_of(ObjectOwner owner, CallOptions options) {
  AGBOX_CO_TRY(listed, co_await list_networks(owner.labels(), options));
  std::vector<EngineAwaitable<>> removals;
  for (const NetworkSeen& network : listed) {
    if (owner.owns(network.labels)) removals.push_back(remove_if_there(network.id, options));
  }
  co_return co_await all_of(executor(), std::move(removals));
}

}  // namespace agbox
