// SPDX-License-Identifier: Apache-2.0
// All sandboxes of this daemon, by ID; serves the calls of clients. Every method runs on the
// control thread, and so do the replies, once what they report is on disk. Each call that waits is
// one coroutine: check, commit, return. It continues if its caller goes away.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agbox/v1/service.pb.h"
#include "async/event.h"
#include "async/task_group.h"
#include "base/check.h"
#include "base/result.h"
#include "control/actor_services.h"
#include "control/event_feed.h"
#include "control/sandbox/sandbox_actor.h"
#include "engine/engine.h"
#include "model/exec/exec_output_source.h"
#include "model/exec/exec_request.h"
#include "model/guest/file_order.h"
#include "model/sandbox/orphans.h"
#include "model/spec/ports.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {

class Directory final : public SandboxClaims {
 public:
  template <class T>
  using Reply = std::function<void(Result<T>)>;

  explicit Directory(ActorServices& services) : services_(services), engine_asked_(new_event()) {}

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
      const v1::SubscribeSandboxEventsRequest& request, std::function<void()> on_available);
  // To the events of all sandboxes.
  Result<std::shared_ptr<AllEventsSubscription>> subscribe(
      const v1::SubscribeEventsRequest& request, std::function<void()> on_available);

  // See SandboxActor::container().
  Result<ContainerId> container(const std::string& sandbox_id, const std::string& name) const;

  // See SandboxActor::containers().
  Result<std::vector<NamedContainer>> containers(const std::string& sandbox_id) const;

  // --- execs, in directory_execs.cpp ---

  // `spec` may be an error: problems of the sandbox are reported before those of the request. An
  // empty exec ID: one is generated.
  void create_exec(const std::string& sandbox_id, Result<ExecRequest> spec,
                   Reply<v1::CreateExecResponse> reply);
  void cancel_exec(const std::string& exec_id, Reply<void> reply);
  void get_exec(const std::string& exec_id, Reply<v1::ExecStatus> reply);
  // By exec ID, one page.
  v1::ListActiveExecsResponse list_active_execs(const v1::ListActiveExecsRequest& request) const;
  // In the order of their start, one page.
  void list_execs(const v1::ListExecsRequest& request, Reply<v1::ListExecsResponse> reply);
  // `on_end` is called when the exec ends, if the caller still holds the reply.
  void find_exec_output(const std::string& exec_id, OnExecEnd on_end,
                        Reply<ExecOutputSource> reply);

  // A place at its input; see SandboxExecs::attach_input().
  void attach_exec_input(const std::string& exec_id, std::shared_ptr<const InputWriter> writer,
                         Reply<ExecInput> reply);
  // EXEC_ALREADY_TERMINAL if it has ended, as the two after it.
  Result<> end_exec_input(const std::string& exec_id, const InputWriter* writer);
  Result<> resize_exec_terminal(const std::string& exec_id, TerminalSize size);
  Result<> signal_exec(const std::string& exec_id, int number);

  // --- files, in directory_files.cpp ---

  using OnFilePipe = std::function<void(FilePipe)>;
  // Copies files into or out of a ready sandbox. `on_open` gets our end of the pipe; `reply`
  // follows when the guest has reported, or it failed. Cancelling the task ends the copy.
  Task transfer_files(std::string sandbox_id, FileOrder order, OnFilePipe on_open,
                      Reply<FilesReport> reply);

  // --- leases, in directory_leases.cpp ---

  // Gets how long the sandbox is kept once no client holds it. Returns false if this one is gone.
  using OnHeld = std::function<boost::asio::awaitable<bool>(std::chrono::nanoseconds lease_ttl)>;
  // Holds a sandbox that has a lease; `on_held` confirms it, and `reply` follows when the sandbox
  // is deleted. Cancelling the task releases it.
  Task hold(std::string sandbox_id, OnHeld on_held, Reply<void> reply);
  // No client has held the sandbox for its lease_ttl.
  void lease_is_due(const std::string& sandbox_id);
  // From now on no lease expires: the daemon itself ends the calls that hold sandboxes.
  void keep_unheld() { keeps_unheld_ = true; }

  // --- the engine ---
  // Its container may have ended, or may lack what it was started with.
  void recheck_container(const std::string& sandbox_id);
  // The same of one of its companions.
  void recheck_companion(const std::string& sandbox_id, const std::string& name);
  // See input::IsolationFailed and input::IsolationHolds.
  void isolation_failed(const std::string& sandbox_id, const std::string& why);
  void isolation_holds(const std::string& sandbox_id, bool from_inside);
  void count_new_object(const std::string& sandbox_id);
  void engine_is_back();
  // The first attempt to reach the engine has ended, successfully or not, or takes too long: calls
  // that waited for it continue.
  void engine_was_asked();

  // The time to live of the sandbox in its current state has passed.
  void time_is_up(const std::string& sandbox_id);
  void restart_is_due(const std::string& sandbox_id);
  void end_exec_waits(const std::string& sandbox_id);
  void end_exec_timeouts(const std::string& sandbox_id);
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
  template <class T>
  using Call = boost::asio::awaitable<Result<T>>;

  // Runs the call, then calls `reply`.
  template <class T>
  void answer(Reply<T> reply, Call<T> call) {
    AGBOX_ON_CONTROL_THREAD(services_.loop);
    auto run = [](Reply<T> done, Call<T> called) -> boost::asio::awaitable<void> {
      done(co_await std::move(called));
    };
    services_.tasks.spawn("call", run(std::move(reply), std::move(call)));
  }
  Call<v1::SandboxHandle> create(SandboxSpec spec, std::string sandbox_id);
  Call<v1::SandboxHandle> accept(SandboxSpec spec, std::string sandbox_id);
  Call<void> stop(std::string sandbox_id);
  Call<void> resume(std::string sandbox_id);
  Call<void> remove(std::string sandbox_id);
  Call<std::vector<std::string>> remove_matching(
      google::protobuf::Map<std::string, std::string> selector);
  Call<v1::CreateExecResponse> create_exec(std::string sandbox_id, Result<ExecRequest> spec);
  Call<void> cancel_exec(std::string exec_id);
  Call<v1::ExecStatus> get_exec(std::string exec_id);
  Call<v1::ListExecsResponse> list_execs(v1::ListExecsRequest request);
  Call<ExecOutputSource> find_exec_output(std::string exec_id, OnExecEnd on_end);
  Call<ExecInput> attach_exec_input(std::string exec_id, std::shared_ptr<const InputWriter> writer);
  // The execs of the sandbox that it runs in.
  Result<SandboxExecs*> owner_of(const std::string& exec_id) const;
  // As stored.
  Call<ExecRecord> read_exec(std::string exec_id);
  // An exec that has ended.
  Call<ExecRecord> read_ended_exec(std::string exec_id);

  class CountedCopy;
  Call<FilesReport> transfer_files(std::string sandbox_id, FileOrder order, OnFilePipe on_open);

  class Hold;
  Call<void> hold(std::string sandbox_id, OnHeld on_held);

  Result<SandboxActor*> find(const std::string& sandbox_id) const;
  std::size_t spec_bytes() const;
  std::shared_ptr<Event> new_event() const {
    return std::make_shared<Event>(services_.loop.io().get_executor());
  }
  // Fails if too many calls wait already.
  Call<void> wait_for(std::shared_ptr<Event> event);
  // PORT_IN_USE if another sandbox has one of these ports, or is about to.
  Result<> check_ports(const std::string& sandbox_id, const PortMappings& ports) const;
  // What accept() checks, again after a wait.
  Result<> check_still_on(const std::string& engine_id) const;
  // The sandbox, once the engine was asked.
  Call<SandboxActor*> find_for_engine(std::string sandbox_id);
  // As clients may see it: not while it is being accepted.
  std::shared_ptr<const ExecRecord> running_exec(const std::string& exec_id) const;
  std::size_t undeleted() const;
  boost::asio::awaitable<void> purge_with_logs(std::string sandbox_id);
  void add_restored(SandboxRecord record, SandboxSpec spec);
  void add_broken(const BrokenSandbox& broken);

  ActorServices& services_;
  std::map<std::string, std::unique_ptr<SandboxActor>, std::less<>> actors_;
  // By ID, why it cannot be read; only the ID of these is known.
  std::map<std::string, std::string, std::less<>> unreadable_;
  // Creates that the store has not confirmed yet, by ID.
  struct Undecided {
    unsigned creates = 0;
    std::shared_ptr<Event> decided{};  // deletes that came after them wait for it
  };
  std::map<std::string, Undecided> undecided_;
  std::size_t undecided_spec_bytes_ = 0;
  // The ports of such creates, with the ID that each is for.
  std::list<std::pair<std::string, PortMappings>> undecided_ports_;
  std::size_t waiting_calls_ = 0;
  std::size_t file_copies_ = 0;  // in progress
  std::size_t holds_ = 0;
  bool keeps_unheld_ = false;
  // The first attempt to reach the engine has ended, or takes too long to wait for. Work that needs
  // the engine waits for that, not longer.
  std::shared_ptr<Event> engine_asked_;
};

}  // namespace agbox
