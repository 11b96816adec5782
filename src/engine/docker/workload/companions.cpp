// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/companions.h"

#include <algorithm>
#include <utility>

#include "engine/docker/step.h"
#include "engine/docker/workload/account_files.h"
#include "engine/docker/workload/container_loss.h"
#include "engine/docker/workload/stop_one.h"
#include "engine/docker/workload/unbroken_call.h"
#include "engine/docker/workload/unmet_request.h"
#include "guestwire/place.h"
#include "model/object_names.h"

namespace agbox {
namespace {

constexpr int kOutputLines = 10;

CallOptions on_its_engine(const CompanionFacts& facts) {
  return {.deadline = {}, .expected_engine = facts.engine_id};
}

std::string title(const CompanionFacts& facts) {
  return "companion container \"" + facts.name() + "\"";
}

// A check that cannot be run: the container has ended, is paused or is gone.
EngineError unrunnable(const EngineError& error) {
  const bool is_of_its_state =
      error.kind() == EngineErrorKind::NotFound || error.kind() == EngineErrorKind::Conflict;
  if (!is_of_its_state) return error;
  return {EngineErrorKind::Refused, error.message(), error.http_status(), error.engine_text()};
}

}  // namespace

std::vector<std::string> probe_command(const ContainerSeen& container) {
  const std::vector<std::string>& test = container.health_test;
  if (test.size() < 2) return {};  // NONE alone
  if (test[0] == "CMD") return {test.begin() + 1, test.end()};
  if (test[0] != "CMD-SHELL") return {};
  std::vector<std::string> command = container.shell;
  if (command.empty()) command = {"/bin/sh", "-c"};
  command.insert(command.end(), test.begin() + 1, test.end());
  return command;
}

// --- creation ---

EngineAwaitable<> Companions::ensure_companion_image(CompanionFacts& facts,
                                                     Engine::Progress progress) {
  const std::string image = facts.spec.image();
  auto report = [&progress, &image](const PullProgress& pull) {
    progress(describe_pull(image, pull));
  };
  AGBOX_CO_TRY(seen, co_await step("companion.image",
                                   pulls_.ensure_image(image, report, on_its_engine(facts))));
  co_return EngineResult<>{};
}

EngineAwaitable<> Companions::ensure_companion(CompanionFacts& facts, Attachments attachments) {
  const auto settings = companion_settings(instance_id_, facts, attachments, hardening_);
  if (!settings) co_return std::unexpected(settings.error().within(title(facts)));
  auto call = client_.ensure_container_with(
      owner_of(facts), companion_key(facts.name()), *settings,
      distinct_companion_container_name(facts.sandbox_id, facts.name()), on_its_engine(facts));
  const auto id = co_await step("companion.container", unbroken(calls_, std::move(call)));
  if (!id) co_return std::unexpected(in_terms_of(facts.spec, id.error()));
  facts.container.set_container_id(*id);
  co_return EngineResult<>{};
}

// --- start and stop ---

EngineAwaitable<ContainerSeen> Companions::require_companion(const CompanionFacts& facts) {
  AGBOX_CO_TRY(found,
               co_await step("companion.find", client_.find_container_of(
                                                   owner_of(facts), facts.container.container_id(),
                                                   on_its_engine(facts))));
  if (!found) co_return engine_fail(EngineErrorKind::NotFound, title(facts) + " is gone");
  if (companion_of(found->labels) != facts.name()) {
    co_return engine_fail(EngineErrorKind::Conflict,
                          "container " + found->name + " is not " + title(facts));
  }
  co_return std::move(*found);
}

EngineAwaitable<> Companions::start_companion(CompanionFacts& facts) {
  AGBOX_CO_TRY(found, co_await require_companion(facts));
  if (found.is_up()) {
    facts.container.set_engine_started_at(start_mark(found));
    co_return EngineResult<>{};
  }
  const std::string id = found.id;
  AGBOX_CO_TRY_VOID(co_await step("companion.account_files",
                                  check_account_files(client_, id, on_its_engine(facts))));
  auto call = client_.start_container(id, on_its_engine(facts));
  const auto started = co_await step("companion.start", unbroken(calls_, std::move(call)));
  if (!started) co_return std::unexpected(in_terms_of(facts.spec, started.error()));
  AGBOX_CO_TRY(seen, co_await step("companion.started",
                                   client_.inspect_container(id, on_its_engine(facts))));
  facts.container.set_engine_started_at(start_mark(seen));
  co_return EngineResult<>{};
}

EngineAwaitable<CompanionSeen> Companions::inspect_companion(CompanionFacts facts) {
  const auto found =
      co_await step("companion.inspect",
                    client_.find_container(facts.container.container_id(), on_its_engine(facts)));
  if (!found) co_return std::unexpected(asked_again(found.error()));
  co_return judge_companion(*found, owner_of(facts), facts.name());
}

EngineAwaitable<> Companions::stop_companion(CompanionFacts facts) {
  const bool is_paused = facts.container.paused() != store::v1::Container::PAUSED_NO;
  return stop_one(client_, facts.container.container_id(), is_paused, on_its_engine(facts));
}

// --- health and output ---

EngineAwaitable<ProbeOutcome> Companions::probe_companion(CompanionFacts facts,
                                                          std::chrono::milliseconds timeout) {
  const auto found = co_await require_companion(facts);
  if (!found) co_return std::unexpected(unrunnable(asked_again(found.error())));
  if (!found->is_up()) {
    co_return engine_fail(EngineErrorKind::Refused, title(facts) + " does not run");
  }
  const std::vector<std::string> command = probe_command(*found);
  if (command.empty()) co_return ProbeOutcome{};

  auto done = co_await step("companion.probe",
                            client_.run_process(found->id, command, timeout, on_its_engine(facts)));
  if (done) co_return ProbeOutcome{.exit_code = done->exit_code, .output = done->output};
  if (done.error().kind() == EngineErrorKind::TimedOut) {
    co_return engine_fail(EngineErrorKind::TimedOut,
                          "the health check of " + title(facts) + ": " + done.error().message());
  }
  co_return std::unexpected(unrunnable(done.error()));
}

// --- execs ---

EngineAwaitable<std::int64_t> Companions::start_companion_guest(CompanionFacts facts) {
  const auto found = co_await require_companion(facts);
  if (!found) co_return std::unexpected(unrunnable(asked_again(found.error())));
  if (!found->is_up() || found->is_paused) {
    co_return engine_fail(EngineErrorKind::Refused, title(facts) + " does not run");
  }
  const auto& targets = found->mount_targets;
  if (std::ranges::find(targets, guestwire::kProgramInside) == targets.end()) {
    co_return engine_fail(
        EngineErrorKind::Refused,
        title(facts) +
            " was created by an older release, which runs no execs in companions; "
            "create a new sandbox for it");
  }
  const std::vector<std::string> command{guestwire::kProgramInside, "join", found->user};
  auto call = client_.start_process(found->id, command, on_its_engine(facts));
  auto started = co_await step("companion.guest", std::move(call));
  if (!started) co_return std::unexpected(unrunnable(started.error()));
  co_return started;
}

EngineAwaitable<std::string> Companions::companion_output(CompanionFacts facts) {
  const std::string id = facts.container.container_id();
  if (id.empty()) co_return std::string();
  auto output = co_await step("companion.output",
                              client_.read_output(id, kOutputLines, on_its_engine(facts)));
  if (!output && output.error().is_definite()) co_return std::string();
  co_return output;
}

}  // namespace agbox
