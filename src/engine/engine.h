// SPDX-License-Identifier: Apache-2.0
// The port to what makes sandboxes exist. A workload is all that the engine has of one sandbox: its
// network and its containers. Which objects these are is known to the adapter alone; what it has to
// remember of them is part of SandboxFacts, which the caller stores.
//
// Every call has a deadline, may be repeated, and touches nothing but what carries the labels of
// this daemon's instance. Calls about a sandbox go to the engine that it was created on; any other
// counts as unreachable. Facts are kept true however a call ends. Single-threaded.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "engine/engine_error.h"
#include "model/sandbox/attachments.h"
#include "model/sandbox/companion.h"
#include "model/sandbox/container_log.h"
#include "model/sandbox/container_usage.h"
#include "model/sandbox/orphans.h"
#include "model/sandbox/restart_plan.h"
#include "model/sandbox/sandbox_facts.h"

namespace agbox {

struct ReachableEngine {
  std::string id;                // stable across restarts of the engine
  std::string title;             // for people, with the version
  std::int64_t cpus = 0;         // 0 if not known
  std::string root_directory{};  // of its files; empty if not known
  // Why it cannot limit the files of a container; empty if it can, or that is not known.
  std::string disk_limit_shortcoming{};

  bool operator==(const ReachableEngine&) const = default;
};

// Reports of Engine::watch(). All but the first two are hints: inspect before deciding.
class EngineListener {
 public:
  virtual void reachable(const ReachableEngine& engine) = 0;
  // `problem` is a sentence for people.
  virtual void unreachable(std::string problem) = 0;
  // Reports begin, initially or after a gap: anything may have changed.
  virtual void reconcile_due() = 0;
  // The primary container of the sandbox may have ended, or runs on after a pause.
  virtual void container_may_have_ended(const std::string& sandbox_id) = 0;
  // The same of a companion, or its health may have changed.
  virtual void companion_may_have_changed(const std::string& sandbox_id,
                                          const std::string& name) = 0;
  // A container of the sandbox was started or removed.
  virtual void container_changed(const std::string& sandbox_id) = 0;
  // Something was created in the name of the sandbox, perhaps for an earlier daemon, or for that of
  // another instance.
  virtual void object_created(const std::string& sandbox_id) = 0;
  // Something was created that no sandbox claims.
  virtual void sweep_due() = 0;

 protected:
  ~EngineListener() = default;
};

// Which sandboxes claim what, as of the moment of each call.
class SandboxClaims {
 public:
  virtual SandboxClaim claim_of(const std::string& sandbox_id) const = 0;
  // Every sandbox that the store has, including deleted and unreadable ones.
  virtual std::vector<std::string> sandbox_ids() const = 0;

 protected:
  ~SandboxClaims() = default;
};

// A primary container of our instance that the store does not know, for people to decide about.
struct UnknownPrimary {
  std::string sandbox_id;
  std::string container_id;
  std::string container_name;

  bool operator==(const UnknownPrimary&) const = default;
};

struct EngineDiagnosisRequest {
  std::vector<std::string> requested_images;
  std::vector<std::string> sandbox_images;
  const SandboxClaims& claims;
};

struct EngineDiagnosis {
  v1::DiagnoseResponse findings{};
  // For checks of the host.
  std::string root_directory{};  // of the engine's files; empty if unknown
  // The nftables tables in which the engine accepts packets of containers; "name*" is a prefix.
  std::vector<std::string> firewall_tables{};
};

// What one container printed, while it is being read. Nothing is read ahead: a reader that stalls
// costs the memory of a piece or two. Its destruction frees the connection to the engine.
class ContainerLog {
 public:
  virtual ~ContainerLog() = default;
  // The next piece; nullopt at the end, which also comes when a followed container ends. Refused if
  // the engine cannot read on.
  virtual EngineAwaitable<std::optional<LogPiece>> read() = 0;
};

class Engine {
 public:
  // Reports phases that take a while, such as a pull, as sentences for people.
  using Progress = std::function<void(std::string phase)>;

  virtual ~Engine() = default;

  // For messages, with its article.
  virtual std::string name() const = 0;
  // Reports until cancelled. Connects, and reconnects after every loss.
  virtual asio::awaitable<void> watch(EngineListener& listener, const SandboxClaims& claims) = 0;

  // Pulls the sandbox's image if necessary, and records in the facts what it says.
  virtual EngineAwaitable<> ensure_image(SandboxFacts& facts, Progress progress) = 0;
  // The existing workload or a new one. What is being created is not interrupted by cancellation.
  virtual EngineAwaitable<> ensure_workload(SandboxFacts& facts, Attachments attachments) = 0;
  // Refused if the workload is incomplete. Stops it if it runs.
  virtual EngineAwaitable<> require_workload(const SandboxFacts& facts) = 0;
  // Records in the facts what distinguishes this start from the next. Unsafe, and not started, if
  // what the sandbox left in it would block the engine.
  virtual EngineAwaitable<> start(SandboxFacts& facts) = 0;
  virtual EngineAwaitable<SandboxInspection> inspect(const SandboxFacts& facts) = 0;
  // All its containers, at the same time: those that the facts list. Their processes have a few
  // seconds to end, unless it is paused: then they are killed. Succeeds if they do not run, or are
  // gone. So do pause() and unpause().
  virtual EngineAwaitable<> stop(const SandboxFacts& facts) = 0;
  // Freezes every process of it. Both may be repeated, and are not interrupted by cancellation, so
  // that neither is overtaken by the other. Unpausing succeeds if it does not run, or is gone.
  virtual EngineAwaitable<> pause(const SandboxFacts& facts) = 0;
  virtual EngineAwaitable<> unpause(const SandboxFacts& facts) = 0;
  // Stops whatever carries the sandbox's labels, if that is all that is known of it.
  virtual EngineAwaitable<> stop_all(const SandboxFacts& facts) = 0;
  // Removes whatever carries the sandbox's labels, and forgets it in the facts.
  virtual EngineAwaitable<> remove(SandboxFacts& facts) = 0;
  // --- companions: the other containers of the workload, each by itself ---

  // Pulls its image if necessary. Concurrent pulls of one image are one.
  virtual EngineAwaitable<> ensure_companion_image(CompanionFacts& facts, Progress progress) = 0;
  // Its existing container or a new one; its ID is in the facts. Not interrupted by cancellation.
  virtual EngineAwaitable<> ensure_companion(CompanionFacts& facts, Attachments attachments) = 0;
  // Requires the sandbox's network. Succeeds if it runs. Records in the facts what distinguishes
  // this start from the next. Not interrupted by cancellation.
  virtual EngineAwaitable<> start_companion(CompanionFacts& facts) = 0;
  virtual EngineAwaitable<CompanionSeen> inspect_companion(CompanionFacts facts) = 0;
  // Runs its health check once, if it has one. Refused if that cannot be run, TimedOut if it does
  // not end within `timeout`: then it may still be running.
  virtual EngineAwaitable<ProbeOutcome> probe_companion(CompanionFacts facts,
                                                        std::chrono::milliseconds timeout) = 0;
  // Starts a guest in it, next to what it runs, and returns its pid as the engine sees it. Refused
  // if it does not run, or was not created with the guest's attachments.
  virtual EngineAwaitable<std::int64_t> start_companion_guest(CompanionFacts facts) = 0;
  // The end of what it printed, for people; empty if nothing, or that is not known.
  virtual EngineAwaitable<std::string> companion_output(CompanionFacts facts) = 0;
  // Succeeds if it does not run, or is gone.
  virtual EngineAwaitable<> stop_companion(CompanionFacts facts) = 0;

  // --- logs and usage ---
  // NotFound if the container is gone.
  virtual EngineAwaitable<std::unique_ptr<ContainerLog>> open_log(ContainerId container,
                                                                  LogQuery query) = 0;
  // What the container uses now. NotFound if it is gone.
  virtual EngineAwaitable<ContainerUsage> measure(ContainerId container) = 0;

  // Reserves what a sandbox of an earlier daemon holds.
  virtual void restored(const SandboxFacts& facts) = 0;
  // Of whom the engine has published this port of the host, for people; nullopt if of none.
  virtual EngineAwaitable<std::optional<std::string>> publisher_of(v1::PortMapping port) = 0;
  // What to add to the message of a refusal, such as that the engine's disk is full; may be empty.
  virtual asio::awaitable<std::string> remark_on_refusal() = 0;

  // Removes what no sandbox claims. A removal that is refused is logged, and the rest continues.
  virtual EngineAwaitable<> sweep(const SandboxClaims& claims) = 0;
  // As of the latest sweep.
  virtual const std::vector<UnknownPrimary>& unknown_primaries() const = 0;

  // The engine's checks of `agbox doctor`.
  virtual asio::awaitable<EngineDiagnosis> diagnose(EngineDiagnosisRequest request) = 0;

  // Cancels and joins what would outlive its cancelled caller. The last call, after all callers
  // were cancelled.
  virtual asio::awaitable<void> shut_down() = 0;
};

}  // namespace agbox
