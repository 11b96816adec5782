// SPDX-License-Identifier: Apache-2.0
// All sandboxes of this daemon, by id: what the calls of clients come to. Every method runs on the
// control thread; replies come on it too, once what they say is on disk.
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

  // Takes in what earlier runs of the daemon left, and goes on with it.
  void restore(LoadedSandboxes loaded);

  // An empty id: one is made up.
  void create(SandboxSpec spec, std::string sandbox_id, Reply<v1::SandboxHandle> reply);
  Result<v1::SandboxHandle> get(const std::string& sandbox_id) const;
  // Newest first, one page.
  Result<v1::ListSandboxesResponse> list(const v1::ListSandboxesRequest& request) const;
  void stop(const std::string& sandbox_id, Reply<void> reply);
  void resume(const std::string& sandbox_id, Reply<void> reply);
  void remove(const std::string& sandbox_id, Reply<void> reply);
  // Gives the ids whose deletion this began, in order; an error if one of them could not be
  // recorded. The call may be repeated.
  void remove_matching(const google::protobuf::Map<std::string, std::string>& selector,
                       Reply<std::vector<std::string>> reply);
  Result<std::shared_ptr<EventSubscription>> subscribe(
      const v1::SubscribeSandboxEventsRequest& request, std::function<void()> on_news);

  // --- execs, in directory_execs.cpp ---

  // `spec` may be a refusal: what is wrong with the sandbox is told before what is wrong with the
  // request. An empty exec id: one is made up.
  void create_exec(const std::string& sandbox_id, Result<ExecRequest> spec,
                   Reply<v1::CreateExecResponse> reply);
  void cancel_exec(const std::string& exec_id, Reply<void> reply);
  void get_exec(const std::string& exec_id, const Reply<v1::ExecStatus>& reply);
  // By exec id, one page.
  v1::ListActiveExecsResponse list_active_execs(const v1::ListActiveExecsRequest& request) const;
  // In the order of their start, one page.
  void list_execs(const v1::ListExecsRequest& request, const Reply<v1::ListExecsResponse>& reply);
  // Whoever holds what it gives is told of the exec's end.
  void find_exec_output(const std::string& exec_id, OnExecEnd on_end,
                        const Reply<ExecOutputSource>& reply);

  // --- the engine ---
  // Its container may have ended, or be without what it was started with.
  void doubt_container(const std::string& sandbox_id);
  // See input::IsolationFailed and input::IsolationHolds.
  void isolation_failed(const std::string& sandbox_id, const std::string& why);
  void isolation_holds(const std::string& sandbox_id, bool from_inside);
  void engine_made_something(const std::string& sandbox_id);
  void engine_is_back();
  // The first try to reach the engine has ended, well or not: calls that came before go on.
  void engine_was_asked();

  // A sandbox was left alone for as long as its state allows.
  void time_is_up(const std::string& sandbox_id);
  void restart_is_due(const std::string& sandbox_id);
  Deadlines& deadlines() { return services_.deadlines; }

  // --- what sweeps ask ---
  SandboxClaim claim_of(const std::string& sandbox_id) const override;
  std::vector<std::string> sandbox_ids() const override;

  // Those in which something of a caller may run.
  std::vector<std::string> live_sandboxes() const;
  bool is_live(const std::string& sandbox_id) const;
  // nullptr if there is no such sandbox.
  SandboxPlace* place_of(const std::string& sandbox_id) const;
  // Of those that are not deleted, each once.
  std::vector<std::string> images() const;
  // Those of which so little can be read that they can only be named.
  std::vector<std::string> unreadable_sandboxes() const;
  // Whether a sandbox is left of which something may be in the engine.
  bool has_any() const;

 private:
  Result<SandboxActor*> find(const std::string& sandbox_id) const;
  void decide_create(SandboxSpec spec, std::string sandbox_id, Reply<v1::SandboxHandle> reply);
  void create_is_decided(const std::string& sandbox_id);
  std::size_t spec_bytes() const;
  // Fails if no more calls may wait.
  Result<> check_waiting_calls() const;
  // What needs the engine waits for its first word, and only for that.
  using EngineWork = void (SandboxActor::*)(SandboxActor::Reply);
  void once_engine_was_asked(const std::string& sandbox_id, EngineWork work, Reply<void> reply);
  // As clients may see it: not one that is being accepted.
  std::shared_ptr<const ExecRecord> running_exec(const std::string& exec_id) const;
  std::size_t undeleted() const;
  boost::asio::awaitable<void> purge_with_logs(std::string sandbox_id);
  void purge(const std::string& sandbox_id);
  void add_restored(SandboxRecord record, SandboxSpec spec);
  void add_broken(const BrokenSandbox& broken);

  Services& services_;
  std::map<std::string, std::unique_ptr<SandboxActor>, std::less<>> actors_;
  std::list<std::unique_ptr<SandboxActor>> accepting_;  // until the store has answered
  std::unique_ptr<SandboxActor> refused_;               // the latest one
  // Why they cannot be read, by id: so little of them can that they can only be named.
  std::map<std::string, std::string, std::less<>> unreadable_;
  // Creates that are on their way to the store, by id, and the deletes that came after them.
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
