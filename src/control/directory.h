// SPDX-License-Identifier: Apache-2.0
// All sandboxes of this daemon, by ID; serves the calls of clients. Every method runs on the
// control thread, and so do the replies, once what they report is on disk.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "control/event_feed.h"
#include "control/sandbox/sandbox_actor.h"
#include "control/services.h"
#include "engine/engine.h"
#include "model/exec/exec_output_source.h"
#include "model/exec/exec_request.h"
#include "model/sandbox/orphans.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {

class Directory final : public SandboxClaims {
 public:
  template <class T>
  using Reply = std::function<void(Result<T>)>;

  explicit Directory(Services& services) : services_(services) {}

  // Adds the sandboxes of earlier runs of the daemon and continues their operations.
  void restore(LoadedSandboxes loaded);

  // An empty ID: one is generated.
  void create(SandboxSpec spec, std::string sandbox_id, Reply<v1::SandboxHandle> reply);
  Result<v1::SandboxHandle> get(const std::string& sandbox_id) const;
  // Newest first, one page.
  Result<v1::ListSandboxesResponse> list(const v1::ListSandboxesRequest& request) const;
  void stop(const std::string& sandbox_id, Reply<void> reply);
  void resume(const std::string& sandbox_id, Reply<void> reply);
  void remove(const std::string& sandbox_id, Reply<void> reply);
  // Returns the IDs whose deletion this call began, in order; an error if one of them could not be
  // recorded. The call may be repeated.
  void remove_matching(const google::protobuf::Map<std::string, std::string>& selector,
                       Reply<std::vector<std::string>> reply);
  Result<std::shared_ptr<EventSubscription>> subscribe(
      const v1::SubscribeSandboxEventsRequest& request, std::function<void()> on_news);

  // --- execs, in directory_execs.cpp ---

  // `spec` may be an error: problems of the sandbox are reported before those of the request. An
  // empty exec ID: one is generated.
  void create_exec(const std::string& sandbox_id, Result<ExecRequest> spec,
                   Reply<v1::CreateExecResponse> reply);
  void cancel_exec(const std::string& exec_id, Reply<void> reply);
  void get_exec(const std::string& exec_id, const Reply<v1::ExecStatus>& reply);
  // By exec ID, one page.
  v1::ListActiveExecsResponse list_active_execs(const v1::ListActiveExecsRequest& request) const;
  // In the order of their start, one page.
  void list_execs(const v1::ListExecsRequest& request, const Reply<v1::ListExecsResponse>& reply);
  // `on_end` is called when the exec ends, if the caller still holds the reply.
  void find_exec_output(const std::string& exec_id, OnExecEnd on_end,
                        const Reply<ExecOutputSource>& reply);

  // --- the engine ---
  // Its container may have ended, or may lack what it was started with.
  void doubt_container(const std::string& sandbox_id);
  // See input::IsolationFailed and input::IsolationHolds.
  void isolation_failed(const std::string& sandbox_id, const std::string& why);
  void isolation_holds(const std::string& sandbox_id, bool from_inside);
  void engine_made_something(const std::string& sandbox_id);
  void engine_is_back();
  // The first attempt to reach the engine has ended, successfully or not: calls that waited for it
  // continue.
  void engine_was_asked();

  // The time to live of the sandbox in its current state has passed.
  void time_is_up(const std::string& sandbox_id);
  void restart_is_due(const std::string& sandbox_id);
  Deadlines& deadlines() { return services_.deadlines; }

  // --- claims, for sweeps ---
  SandboxClaim claim_of(const std::string& sandbox_id) const override;
  std::vector<std::string> sandbox_ids() const override;

  // Those in which a workload of a caller may run.
  std::vector<std::string> live_sandboxes() const;
  bool is_live(const std::string& sandbox_id) const;
  // nullptr if there is no such sandbox.
  SandboxPlace* place_of(const std::string& sandbox_id) const;
  // Of sandboxes that are not deleted, each once.
  std::vector<std::string> images() const;
  // Those of which only the ID can be read.
  std::vector<std::string> unreadable_sandboxes() const;
  // Whether any sandbox remains that may have objects in the engine.
  bool has_any() const;

 private:
  Result<SandboxActor*> find(const std::string& sandbox_id) const;
  void decide_create(SandboxSpec spec, std::string sandbox_id, Reply<v1::SandboxHandle> reply);
  void create_is_decided(const std::string& sandbox_id);
  std::size_t spec_bytes() const;
  // Fails if too many calls wait already.
  Result<> check_waiting_calls() const;
  // Work that needs the engine waits until the first attempt to reach it has ended, not longer.
  using EngineWork = void (SandboxActor::*)(SandboxActor::Reply);
  void once_engine_was_asked(const std::string& sandbox_id, EngineWork work, Reply<void> reply);
  // As clients may see it: not while it is being accepted.
  std::shared_ptr<const ExecRecord> running_exec(const std::string& exec_id) const;
  std::size_t undeleted() const;
  boost::asio::awaitable<void> purge_with_logs(std::string sandbox_id);
  void purge(const std::string& sandbox_id);
  void add_restored(SandboxRecord record, SandboxSpec spec);
  void add_broken(const BrokenSandbox& broken);

  Services& services_;
  std::map<std::string, std::unique_ptr<SandboxActor>, std::less<>> actors_;
  std::list<std::unique_ptr<SandboxActor>> accepting_;  // until the store has replied
  std::unique_ptr<SandboxActor> refused_;               // the latest refused one
  // By ID, why it cannot be read; only the ID of these is known.
  std::map<std::string, std::string, std::less<>> unreadable_;
  // Creates that the store has not confirmed yet, by ID, and the deletes that came after them.
  struct Undecided {
    unsigned creates = 0;
    std::vector<std::function<void()>> deletes;
  };
  std::map<std::string, Undecided> undecided_;
  std::size_t undecided_spec_bytes_ = 0;
  std::size_t waiting_deletes_ = 0;
  std::vector<std::function<void()>> early_calls_;
};

}  // namespace agbox
