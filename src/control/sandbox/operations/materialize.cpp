// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/materialize.h"

#include <algorithm>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <utility>

#include "control/sandbox/operations/container_settings.h"
#include "control/sandbox/operations/start_primary.h"
#include "control/sandbox/operations/step.h"
#include "control/sandbox/operations/unbroken_call.h"
#include "isolation/seccomp_profile.h"
#include "model/network/ipv4.h"
#include "model/network/resolv_conf.h"
#include "model/network/sandbox_subnet.h"
#include "model/object_names.h"

namespace agbox {
namespace {

std::string describe(const std::string& image, const PullProgress& pull) {
  std::string text = "pulling " + image + ": " + std::to_string(pull.layers_done) + " of " +
                     std::to_string(pull.layers) + " layers";
  if (pull.bytes_total > 0) {
    constexpr std::int64_t mib = 1 << 20;
    text += ", " + std::to_string(pull.bytes_done / mib) + " of " +
            std::to_string(pull.bytes_total / mib) + " MiB";
  }
  return text;
}

asio::awaitable<OperationResult<ImageSeen>> ensure_image(Services& services,
                                                         const SandboxFacts& facts,
                                                         const Progress& progress) {
  const std::string image = facts.spec.create_spec.image();
  auto pulling = [&progress, image](const PullProgress& pull) { progress(describe(image, pull)); };
  co_return co_await step("create.image",
                          services.pulls.ensure_image(image, pulling, on_its_engine(facts)));
}

// The subnets of all networks that are not this sandbox's own.
std::vector<std::string> subnets_of_others(const std::vector<NetworkSeen>& networks,
                                           const ObjectOwner& owner) {
  std::vector<std::string> subnets;
  for (const NetworkSeen& network : networks) {
    if (owner.owns(network.labels)) continue;
    subnets.insert(subnets.end(), network.subnets.begin(), network.subnets.end());
  }
  return subnets;
}

// A create that is tried again keeps its subnet. Which subnets the engine has given to others, with
// no route on this host, is asked only when it refuses ours.
asio::awaitable<OperationResult<NetworkSeen>> ensure_network(Services& services,
                                                             SandboxFacts& facts) {
  const ObjectOwner owner = owner_of(services, facts);
  std::vector<std::string> occupied;
  while (true) {
    if (!facts.subnet) {
      AGBOX_CO_TRY(subnet, services.subnets.choose(occupied));
      facts.subnet = subnet.text();
    }
    auto settings = network_settings(services.store.instance_id(), facts);
    auto call = services.engine.ensure_network(owner, std::move(settings), on_its_engine(facts));
    auto made = co_await step("create.network", unbroken(services.calls, std::move(call)));
    if (made || made.error().end() != OperationEnd::Refused) co_return made;

    AGBOX_CO_TRY(networks, co_await step("create.subnet",
                                         services.engine.list_networks({}, on_its_engine(facts))));
    occupied = subnets_of_others(networks, owner);
    if (!overlaps_any(*facts.subnet, occupied)) co_return made;  // refused for another reason
    services.subnets.give_back(*facts.subnet);
    facts.subnet.reset();
  }
}

// What the image says is kept: by the next start its name may stand for another image.
store::v1::Container::Image kept_of(const ImageSeen& image) {
  store::v1::Container::Image kept;
  kept.mutable_entrypoint()->Assign(image.entrypoint.begin(), image.entrypoint.end());
  kept.set_user(image.user);
  kept.mutable_volumes()->Assign(image.volumes.begin(), image.volumes.end());
  return kept;
}

asio::awaitable<OperationResult<>> ensure_primary(Services& services, SandboxPlace& place,
                                                  SandboxFacts& facts, const ImageSeen& image) {
  const auto& dns = facts.created_with.dns();
  AGBOX_CO_TRY_VOID(check_resolvers({dns.begin(), dns.end()}));
  AGBOX_CO_TRY(attachments, co_await step("create.output_directory", place.prepare(facts)));
  const std::string& instance = services.store.instance_id();
  auto call = services.engine.ensure_container(
      owner_of(services, facts), primary_settings(instance, facts, attachments, seccomp_profile()),
      on_its_engine(facts));
  AGBOX_CO_TRY(id, co_await step("create.container", unbroken(services.calls, std::move(call))));
  store::v1::Container& primary = facts.containers[""];
  primary.set_container_id(id);
  *primary.mutable_image() = kept_of(image);
  co_return OperationResult<>{};
}

// What loads the engine, a few sandboxes at a time.
asio::awaitable<OperationResult<>> bring_up(Services& services, SandboxPlace& place,
                                            SandboxFacts& facts, const ImageSeen& image) {
  AGBOX_CO_TRY(turn, co_await step("create.turn", services.starts.acquire()));
  // The engine asks for a container's network when it starts it, not when it makes it.
  using asio::experimental::awaitable_operators::operator&&;
  auto [network, primary] =
      co_await (ensure_network(services, facts) && ensure_primary(services, place, facts, image));
  if (!network) co_return std::unexpected(std::move(network.error()));
  if (!primary) co_return primary;
  co_return co_await start_primary(services, place, facts);
}

}  // namespace

asio::awaitable<OperationResult<>> materialize(Services& services, SandboxPlace& place,
                                               SandboxFacts& facts, Progress progress) {
  // The spec may have been accepted by another version, before this daemon was started.
  AGBOX_CO_TRY_VOID(check_supported(facts.spec.create_spec));
  AGBOX_CO_TRY(image, co_await ensure_image(services, facts, progress));
  AGBOX_CO_TRY_VOID(co_await step("create.isolation", services.isolation.in_place()));
  AGBOX_CO_TRY_VOID(co_await bring_up(services, place, facts, image));
  AGBOX_CO_TRY_VOID(co_await await_guest(services, place, facts));
  AGBOX_CO_TRY_VOID(co_await prove_isolation(services, place, facts));
  co_return co_await let_go(services, place, facts);
}

}  // namespace agbox
