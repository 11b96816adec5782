// SPDX-License-Identifier: Apache-2.0
#include "control/materialize.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "control/container_loss.h"
#include "control/container_settings.h"
#include "control/exec_logs.h"
#include "control/step.h"
#include "control/unbroken_call.h"
#include "isolation/seccomp_profile.h"
#include "model/ipv4.h"
#include "model/object_names.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelloLimit = 30s;
constexpr auto kEntrypointLimit = 60s;
// The guest ends a slow entrypoint itself and reports it; this is for a guest that does not.
constexpr auto kEntrypointSlack = 5s;

CallOptions on_its_engine(const SandboxFacts& facts) {
  return {.deadline = {}, .expected_engine = facts.created_with.engine_id()};
}

ObjectOwner owner_of(const Services& services, const SandboxFacts& facts) {
  return {.instance = services.store.instance_id(), .sandbox_id = facts.sandbox_id};
}

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

asio::awaitable<Result<ImageSeen>> ensure_image(Services& services, const SandboxFacts& facts,
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

bool overlaps_any(const std::string& subnet, const std::vector<std::string>& others) {
  const auto ours = parse_ipv4_network(subnet);
  return ours && std::ranges::any_of(others, [&ours](const std::string& text) {
           const auto other = parse_ipv4_network(text);
           return other && ours->overlaps(*other);
         });
}

// A create that is tried again keeps its subnet. Which subnets the engine has given to others, with
// no route on this host, is asked only when it refuses ours.
asio::awaitable<Result<NetworkSeen>> ensure_network(Services& services, SandboxFacts& facts) {
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
    if (made || made.error().reason() != Reason::Internal) co_return made;

    AGBOX_CO_TRY(networks, co_await step("create.subnet",
                                         services.engine.list_networks({}, on_its_engine(facts))));
    occupied = subnets_of_others(networks, owner);
    if (!overlaps_any(*facts.subnet, occupied)) co_return made;  // refused for another reason
    services.subnets.give_back(*facts.subnet);
    facts.subnet.reset();
  }
}

asio::awaitable<Result<std::string>> ensure_primary(Services& services, SandboxFacts& facts) {
  AGBOX_CO_TRY(place, services.guests.make(facts.sandbox_id));
  AGBOX_CO_TRY(exec_logs, make_exec_log_folder(facts.created_with, facts.sandbox_id));
  const HostFolders folders{.guest_program = facts.created_with.guest_program(),
                            .link_folder = place.folder,
                            .exec_logs = exec_logs};
  const std::string& instance = services.store.instance_id();
  auto call = services.engine.ensure_container(
      owner_of(services, facts), primary_settings(instance, facts, folders, seccomp_profile()),
      on_its_engine(facts));
  AGBOX_CO_TRY(id, co_await step("create.container", unbroken(services.calls, std::move(call))));
  store::v1::Container& primary = facts.containers[""];
  primary.set_container_id(id);
  primary.set_guest_folder_device(place.identity.device);
  primary.set_guest_folder_inode(place.identity.inode);
  co_return id;
}

guestlink::Expectation expectation(const SandboxFacts& facts, const ImageSeen& image) {
  guestlink::Expectation expected;
  expected.uid = facts.created_with.host_uid();
  expected.gid = facts.created_with.host_gid();
  expected.image_user = image.user;
  for (const std::string& volume : image.volumes) {
    expected.mounts.push_back({.target = volume, .anonymous_volume = true});
  }
  return expected;
}

// Starts the container and waits for its guest, which has run nothing of the image yet.
asio::awaitable<Result<guestlink::GuestHello>> start_primary(Services& services,
                                                             SandboxFacts& facts,
                                                             const ImageSeen& image) {
  AGBOX_CO_TRY_VOID(services.guests.expect(facts.sandbox_id, expectation(facts, image)));
  const std::string container_id = facts.containers[""].container_id();
  AGBOX_CO_TRY_VOID(co_await step(
      "create.start", services.engine.start_container(container_id, on_its_engine(facts))));
  AGBOX_CO_TRY(seen, co_await step("create.look", services.engine.inspect_container(
                                                      container_id, on_its_engine(facts))));
  facts.containers[""].set_engine_started_at(start_mark(seen));
  const auto limit = std::chrono::steady_clock::now() + kHelloLimit;
  AGBOX_CO_TRY(hello,
               co_await step("create.hello", services.guests.hello(facts.sandbox_id, limit)));
  if (!hello.failure.empty()) {
    co_return fail(Reason::Internal, "the sandbox could not be prepared: " + hello.failure);
  }
  co_return hello;
}

// What loads the engine, a few sandboxes at a time.
asio::awaitable<Result<NetworkSeen>> bring_up(Services& services, SandboxFacts& facts,
                                              const ImageSeen& image) {
  AGBOX_CO_TRY(turn, co_await step("create.turn", services.starts.enter()));
  AGBOX_CO_TRY(network, co_await ensure_network(services, facts));
  AGBOX_CO_TRY(container, co_await ensure_primary(services, facts));
  AGBOX_CO_TRY(guest, co_await start_primary(services, facts, image));
  co_return network;
}

// Lets the image's entrypoint and the caller's command run.
asio::awaitable<Result<>> let_go(Services& services, SandboxFacts& facts, const ImageSeen& image) {
  store::v1::Container& primary = facts.containers[""];
  primary.set_secret(facts.next_secret);
  primary.set_start_count(primary.start_count() + 1);
  const v1::CreateSpec& spec = facts.spec.create_spec;
  guestlink::GoOrder order{.secret = primary.secret(),
                           .entrypoint = {},
                           .command = {spec.command().begin(), spec.command().end()},
                           .working_directory = std::string(kWorkspace),
                           .entrypoint_limit = kEntrypointLimit};
  if (!spec.bypass_entrypoint()) order.entrypoint = image.entrypoint;
  AGBOX_CO_TRY_VOID(services.guests.go(facts.sandbox_id, order));
  const auto limit = std::chrono::steady_clock::now() + kEntrypointLimit + kEntrypointSlack;
  AGBOX_CO_TRY(outcome, co_await step("create.entrypoint",
                                      services.guests.entrypoint(facts.sandbox_id, limit)));
  if (outcome.failure) co_return fail(Reason::Internal, outcome.failure->sentence());
  co_return Result<>{};
}

}  // namespace

asio::awaitable<Result<>> materialize(Services& services, SandboxFacts& facts, Progress progress) {
  AGBOX_CO_TRY(image, co_await ensure_image(services, facts, progress));
  AGBOX_CO_TRY(network, co_await bring_up(services, facts, image));
  AGBOX_CO_TRY_VOID(
      co_await step("create.isolation", services.isolation.prove(network.bridge_name)));
  co_return co_await let_go(services, facts, image);
}

}  // namespace agbox
