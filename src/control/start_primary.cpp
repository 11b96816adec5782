// SPDX-License-Identifier: Apache-2.0
#include "control/start_primary.h"

#include <chrono>
#include <utility>

#include "control/container_loss.h"
#include "control/container_settings.h"
#include "control/step.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelloLimit = 30s;
constexpr auto kEntrypointLimit = 60s;
// The guest ends a slow entrypoint itself and reports it; this is for a guest that does not.
constexpr auto kEntrypointSlack = 5s;

guestlink::Expectation expectation(const SandboxFacts& facts, const store::v1::Container& primary) {
  guestlink::Expectation expected;
  expected.uid = facts.created_with.host_uid();
  expected.gid = facts.created_with.host_gid();
  expected.image_user = primary.image().user();
  for (const std::string& volume : primary.image().volumes()) {
    expected.mounts.push_back({.target = volume, .anonymous_volume = true});
  }
  return expected;
}

}  // namespace

CallOptions on_its_engine(const SandboxFacts& facts) {
  return {.deadline = {}, .expected_engine = facts.created_with.engine_id()};
}

ObjectOwner owner_of(const Services& services, const SandboxFacts& facts) {
  return {.instance = services.store.instance_id(), .sandbox_id = facts.sandbox_id};
}

asio::awaitable<Result<>> start_primary(Services& services, SandboxFacts& facts) {
  store::v1::Container& primary = facts.containers[""];
  AGBOX_CO_TRY_VOID(services.guests.expect(facts.sandbox_id, expectation(facts, primary)));
  AGBOX_CO_TRY_VOID(
      co_await step("start.container",
                    services.engine.start_container(primary.container_id(), on_its_engine(facts))));
  AGBOX_CO_TRY(
      seen, co_await step("start.look", services.engine.inspect_container(primary.container_id(),
                                                                          on_its_engine(facts))));
  primary.set_engine_started_at(start_mark(seen));
  const auto limit = std::chrono::steady_clock::now() + kHelloLimit;
  AGBOX_CO_TRY(hello, co_await step("start.hello", services.guests.hello(facts.sandbox_id, limit)));
  if (!hello.failure.empty()) {
    co_return fail(Reason::Internal, "the sandbox could not be prepared: " + hello.failure);
  }
  co_return Result<>{};
}

asio::awaitable<Result<>> let_go(Services& services, SandboxFacts& facts) {
  store::v1::Container& primary = facts.containers[""];
  primary.set_secret(facts.next_secret);
  primary.set_start_count(primary.start_count() + 1);
  const v1::CreateSpec& spec = facts.spec.create_spec;
  guestlink::GoOrder order{.secret = primary.secret(),
                           .entrypoint = {},
                           .command = {spec.command().begin(), spec.command().end()},
                           .working_directory = std::string(kWorkspace),
                           .entrypoint_limit = kEntrypointLimit};
  if (!spec.bypass_entrypoint()) {
    const auto& entrypoint = primary.image().entrypoint();
    order.entrypoint = {entrypoint.begin(), entrypoint.end()};
  }
  AGBOX_CO_TRY_VOID(services.guests.go(facts.sandbox_id, order));
  const auto limit = std::chrono::steady_clock::now() + kEntrypointLimit + kEntrypointSlack;
  AGBOX_CO_TRY(outcome, co_await step("start.entrypoint",
                                      services.guests.entrypoint(facts.sandbox_id, limit)));
  if (outcome.failure) co_return fail(Reason::Internal, outcome.failure->sentence());
  co_return Result<>{};
}

}  // namespace agbox
