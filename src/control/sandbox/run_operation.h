// SPDX-License-Identifier: Apache-2.0
// Runs one operation of a sandbox, on a copy of its facts, and reports the outcome; the sandbox
// decides.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "control/companion/sandbox_companions.h"
#include "control/exec/sandbox_execs.h"
#include "control/sandbox/guest_directory.h"
#include "control/sandbox/operations/operation.h"
#include "control/sandbox/operations/operation_services.h"
#include "model/sandbox/restart_plan.h"
#include "model/sandbox/work.h"

namespace agbox {

struct OperationRun {
  OperationKind kind;
  Lifecycle state;  // of the sandbox
  SandboxFacts facts;
  GuestDirectory guest_directory;
  SandboxJournal::OnDisk decision;  // to run it
  bool may_be_paused = false;       // by an earlier attempt of a Pause
  // The sandbox's own, always current.
  SandboxPlace& place;
  SandboxExecs& execs;
  SandboxCompanions& companions;
  const std::uint64_t& objects_made;
  std::function<void(std::string phase)> progress;
};

struct OperationReport {
  OperationResult<> result{};
  // As the operation left them, regardless of how it ended.
  SandboxFacts facts;
  GuestDirectory guest_directory = GuestDirectory::Usable;
  bool is_outdated = false;                       // see input::Ended
  std::string engine_remark{};                    // on a refusal; see Engine::remark_on_refusal()
  std::optional<SandboxInspection> inspection{};  // see input::Ended
  bool is_paused_by_others = false;               // see input::Ended
};

asio::awaitable<OperationReport> run_operation(OperationServices& services, OperationRun run,
                                               Logger log);

}  // namespace agbox
