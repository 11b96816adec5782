// SPDX-License-Identifier: Apache-2.0
// Runs the commands that companions have for the primary container (post_start_on_primary), one at
// a time for each companion, as the guest runs execs: as the runtime user, with their output in
// files, and each once for one start of the primary, even if the daemon crashes in between. Clients
// do not see them as execs.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "async/condition.h"
#include "base/log.h"
#include "control/actor_services.h"
#include "control/sandbox/sandbox_journal.h"
#include "model/guest/exec_end.h"
#include "model/guest/guest_hello.h"
#include "model/sandbox/companion.h"
#include "place/place.h"

namespace agbox {

class PrimaryHooks {
 public:
  // What they need of their sandbox.
  struct Sandbox {
    const SandboxFacts& facts;  // always current
    SandboxPlace& place;
    SandboxJournal& journal;
  };

  PrimaryHooks(ActorServices& services, Sandbox sandbox, Logger log);
  PrimaryHooks(const PrimaryHooks&) = delete;

  // Those of an earlier run of the daemon that may still run.
  void restore(const CompanionFacts& companion);

  // The primary runs its workload: the start that hooks are sent to. 0: it does not run.
  void primary_is_up(std::uint64_t start_count);

  // Runs those of the companion that have not run, in order, once the primary is up. The first that
  // fails ends them, with a sentence for people. CANCELLED if the caller was cancelled: what was
  // sent continues, and the next call waits for it.
  asio::awaitable<Result<>> run(CompanionFacts& companion);

  // --- reports of the guest ---
  bool owns(const std::string& exec_id) const { return running_.contains(exec_id); }
  void guest_connected(const GuestHello& hello);
  void guest_lost();
  void ended(const ExecEnd& end);
  void not_sent(const std::string& exec_id, const std::string& why);

 private:
  struct Running {
    bool is_with_guest = false;    // that is connected now
    std::optional<ExecEnd> end{};  // kept until it is recorded
  };

  asio::awaitable<Result<>> run_next(CompanionFacts& companion);
  asio::awaitable<Result<>> begin(CompanionFacts& companion);
  asio::awaitable<Result<>> send(const CompanionFacts& companion);
  asio::awaitable<Result<ExecEnd>> wait_for_end(const CompanionFacts& companion);
  asio::awaitable<Result<>> judge(CompanionFacts& companion, ExecEnd end);
  asio::awaitable<Result<>> failed(CompanionFacts& companion, std::string how);
  asio::awaitable<Result<>> store(const CompanionFacts& companion);
  void forget(const std::string& exec_id);

  ActorServices& services_;
  Sandbox sandbox_;
  Logger log_;
  std::uint64_t primary_start_ = 0;
  std::map<std::string, Running> running_;  // by the ID that the guest knows
  Condition changed_;
};

}  // namespace agbox
