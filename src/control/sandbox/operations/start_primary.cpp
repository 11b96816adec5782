// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/operations/start_primary.h"

#include <chrono>
#include <utility>

#include "control/port_check.h"
#include "control/sandbox/operations/step.h"
#include "guestwire/place.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kHelloLimit = 30s;
constexpr auto kEntrypointLimit = 60s;
// The guest itself stops a slow entrypoint and reports it; this is for a guest that does not.
constexpr auto kEntrypointSlack = 5s;

// Inspects the container when the guest is silent or may be gone. Succeeds if the caller may
// continue to wait, otherwise returns the reason.
asio::awaitable<OperationResult<>> wait_on(OperationServices& services, const SandboxFacts& facts,
                                           OperationFailure silence) {
  const bool may_have_ended = silence.end() == OperationEnd::Lost;
  if (!may_have_ended && silence.end() != OperationEnd::Refused) co_return std::unexpected(silence);
  AGBOX_CO_TRY(inspection, co_await step("silence.inspect", services.engine.inspect(facts)));
  if (inspection.loss) {
    co_return std::unexpected(OperationFailure(
        OperationEnd::Lost, "the container was lost while it started: " + inspection.loss->how));
  }
  if (!may_have_ended) co_return std::unexpected(silence);
  co_return OperationResult<>{};
}

}  // namespace

asio::awaitable<OperationResult<>> admit_companions(OperationServices& services,
                                                    SandboxPlace& place,
                                                    SandboxCompanions& companions) {
  if (!companions.awaits_network()) co_return OperationResult<>{};
  AGBOX_CO_TRY_VOID(co_await step("companions.verify", services.isolation.verify_network(place)));
  companions.network_is_up();
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<>> start_primary(OperationServices& services, SandboxPlace& place,
                                                 SandboxFacts& facts) {
  AGBOX_CO_TRY_VOID(place.expect(facts, /*engine_pid=*/0));
  auto started = co_await services.engine.start(facts);
  if (started || started.error().kind() != EngineErrorKind::PortInUse) co_return started;
  // It was free when the sandbox was accepted. The holder, if it still has it, is better known here
  // than to the engine.
  AGBOX_CO_TRY_VOID(co_await step(
      "ports.holder",
      check_host_ports(services.engine, services.place, facts.spec.create_spec.ports())));
  co_return started;
}

asio::awaitable<OperationResult<>> await_guest(OperationServices& services, SandboxPlace& place,
                                               SandboxFacts& facts) {
  const auto limit = std::chrono::steady_clock::now() + kHelloLimit;
  while (true) {
    const auto hello = co_await step("start.hello", place.hello(limit));
    if (hello) AGBOX_CO_TRY_VOID(place.check_mounts(facts, *hello));
    if (hello && hello->failure.empty()) {
      store::v1::Container& primary = facts.containers[""];
      primary.set_guest_pid(hello->process.pid);
      primary.set_guest_start_ticks(hello->process.start_time);
      co_return OperationResult<>{};
    }
    if (hello) {
      co_return refuse("the sandbox could not be prepared: " + hello->failure);
    }
    AGBOX_CO_TRY_VOID(co_await wait_on(services, facts, hello.error()));
  }
}

asio::awaitable<OperationResult<>> verify_isolation(OperationServices& services,
                                                    SandboxPlace& place,
                                                    const SandboxFacts& facts) {
  auto verified =
      co_await step("start.verify", services.isolation.verify_starting(facts.sandbox_id, place));
  // Verification involves the guest, which may be gone with its container: report that instead.
  if (!verified) AGBOX_CO_TRY_VOID(co_await wait_on(services, facts, verified.error()));
  co_return verified;
}

asio::awaitable<OperationResult<>> copy_into_primary(OperationServices& services,
                                                     SandboxPlace& place, SandboxFacts& facts,
                                                     Engine::Progress progress) {
  store::v1::Container& primary = facts.containers[""];
  primary.clear_warnings();
  for (const PlannedCopy& copy : facts.copies()) {
    auto copied = co_await step("create.copy", place.copy_in(copy, progress));
    if (copied) {
      if (!copied->warning.empty()) primary.add_warnings(copied->warning);
      continue;
    }
    // The guest may be gone with its container: report that instead.
    AGBOX_CO_TRY_VOID(co_await wait_on(services, facts, copied.error()));
    co_return std::unexpected(copied.error());
  }
  co_return OperationResult<>{};
}

asio::awaitable<OperationResult<>> start_entrypoint(OperationServices& services,
                                                    SandboxPlace& place, SandboxFacts& facts) {
  store::v1::Container& primary = facts.containers[""];
  primary.set_secret(facts.next_secret);
  primary.set_start_count(primary.start_count() + 1);
  const v1::CreateSpec& spec = facts.spec.create_spec;
  GoOrder order{.secret = primary.secret(),
                .entrypoint = {},
                .command = {spec.command().begin(), spec.command().end()},
                .working_directory = guestwire::kWorkspace,
                .entrypoint_limit = kEntrypointLimit};
  if (!spec.bypass_entrypoint()) {
    const auto& entrypoint = primary.image().entrypoint();
    order.entrypoint = {entrypoint.begin(), entrypoint.end()};
  }
  if (const auto sent = place.go(order); !sent) {
    co_return co_await wait_on(services, facts, sent.error());
  }
  auto limit = std::chrono::steady_clock::now() + kEntrypointLimit + kEntrypointSlack;
  OperationResult<> goes_on;
  while (true) {
    const auto outcome = co_await step("start.entrypoint", place.entrypoint(limit));
    if (outcome && !outcome->failure) co_return OperationResult<>{};
    if (outcome) co_return refuse(outcome->failure->sentence());
    if (!goes_on) co_return goes_on;
    goes_on = co_await wait_on(services, facts, outcome.error());
    // A short command may be done by now. Its guest reported before that the entrypoint let it
    // through, and that has arrived.
    if (!goes_on) limit = std::chrono::steady_clock::now();
  }
}

}  // namespace agbox
