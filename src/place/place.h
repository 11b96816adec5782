// SPDX-License-Identifier: Apache-2.0
// Where sandboxes run: everything that the kernel binds to their machine. That is the connection to
// each guest, the files that hold the output of execs, and the isolation from the host and its
// networks. `place/local` is the machine of this process.
//
// A place has no state that must survive it: that is in SandboxFacts, which control stores and only
// the place interprets; what a guest reported is reported again after a reconnect. All calls and
// all events are on the control thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agbox/store/v1/record.pb.h"
#include "agbox/v1/service.pb.h"
#include "base/result.h"
#include "model/exec/exec_input.h"
#include "model/guest/entrypoint_outcome.h"
#include "model/guest/exec_order.h"
#include "model/guest/file_order.h"
#include "model/guest/go_order.h"
#include "model/guest/guest_error.h"
#include "model/guest/guest_hello.h"
#include "model/guest/guest_listener.h"
#include "model/network/ipv4.h"
#include "model/network/isolation_health.h"
#include "model/sandbox/attachments.h"
#include "model/sandbox/sandbox_facts.h"
#include "model/spec/ports.h"

namespace agbox {

namespace asio = boost::asio;

// Where the output of one exec is, as it is stored and shown to clients.
struct OutputPaths {
  std::string root;  // with every symbolic link resolved; both files are below
  std::string stdout_path;
  std::string stderr_path;
};

// A copy into a container is complete.
struct CopyOutcome {
  std::string warning{};  // what a shadow copy lacks, for people; empty if nothing
};

enum class VerifyFrom {
  Inside,   // the guest takes part
  Outside,  // without the guest, which does not respond while its sandbox is paused
};

// Whether a sandbox is isolated now.
struct Verification {
  Result<> outcome;
  // The guest did not report its attempt to connect; everything that can be verified without it
  // holds.
  bool is_unknown = false;
};

// Holds the sources of mounts open, so that no other file can get their identity.
class MountPins {
 public:
  virtual ~MountPins() = default;
};

// One sandbox's own handle, owned by the sandbox. The life of its guest:
//
//   prepare()                       before the container is created
//   pin_mounts(), expect(), hello(), check_mounts(), go(), entrypoint()
//                                   each start of the container
//   copy_in()                       between check_mounts() and go() of the first one
//   rest() when it is stopped, adopt() before its next start
//   reconnect()                     if it runs already when the daemon starts
//   remove()                        once the container is gone
//
// An error of an exec's call means that the guest did not get it and never will.
class SandboxPlace {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~SandboxPlace() = default;

  // Creates what the container has to see, if missing, and records it in the facts. Unavailable
  // while leftovers of the same name are being removed.
  virtual asio::awaitable<GuestResult<Attachments>> prepare(SandboxFacts& facts) = 0;
  // Uses what an existing container sees. Refused if that is gone or is not the same any more,
  // Unavailable if it cannot be inspected now.
  virtual asio::awaitable<GuestResult<>> adopt(const SandboxFacts& facts) = 0;
  // The same, for a container that runs: its guest connects by itself.
  virtual asio::awaitable<GuestResult<>> reconnect(const SandboxFacts& facts) = 0;
  // While the container does not run: nothing listens for a guest.
  virtual void rest() = 0;
  // Call last: it must outlive the container.
  virtual asio::awaitable<Result<>> remove(const SandboxFacts& facts) = 0;

  // --- a start of the container ---
  // Keeps what resolve_mounts() opened until the first start.
  virtual void keep(std::unique_ptr<MountPins> pins) = 0;
  // Opens the sources of its mounts until check_mounts(). MOUNT_CHANGED if one is not what it was
  // when the sandbox was accepted.
  virtual asio::awaitable<Result<>> pin_mounts(const SandboxFacts& facts) = 0;
  // MOUNT_CHANGED unless the guest found the sources at their targets: the engine resolves their
  // paths again at every start.
  virtual Result<> check_mounts(const SandboxFacts& facts, const GuestHello& hello) = 0;
  // Listens for the guest of the next start; that of an earlier one is disconnected. `engine_pid`
  // is its process as the engine sees it, if other processes run next to it already; otherwise 0.
  virtual GuestResult<> expect(const SandboxFacts& facts, std::int64_t engine_pid) = 0;
  // The container may have ended: hello() and entrypoint() fail once with MayHaveEnded, so that the
  // caller can inspect it.
  virtual void container_may_have_ended() = 0;
  // Returns once the guest is connected and has prepared its container.
  virtual asio::awaitable<GuestResult<GuestHello>> hello(Deadline deadline) = 0;
  // Whether the sandbox is isolated now. While a start is in progress nothing but the guest runs.
  // From outside the outcome is unknown at best.
  virtual asio::awaitable<Verification> verify(VerifyFrom from) = 0;
  // Copies into the container, while nothing but the guest runs. Refused with the path if it cannot
  // be copied completely; what was copied until then stays. If it takes long, `progress` is called
  // about every second.
  virtual asio::awaitable<GuestResult<CopyOutcome>> copy_in(
      PlannedCopy copy, std::function<void(std::string phase)> progress) = 0;
  // Random; authenticates the guest of this start.
  virtual std::string new_secret() const = 0;
  virtual GuestResult<> go(const GoOrder& order) = 0;
  virtual asio::awaitable<GuestResult<EntrypointOutcome>> entrypoint(Deadline deadline) = 0;

  // --- execs ---
  // A guest is connected and has reported which execs it has.
  virtual bool is_connected() const = 0;
  // Fails with the reason if start_exec() would be refused now.
  virtual Result<> takes_execs() const = 0;
  // Whether the connected guest takes everything that an order can say; one of an older release
  // ignores the user.
  virtual bool guest_is_current() const = 0;
  // Creates the files for the output of an exec that is not accepted yet; open_output() or
  // discard_output() follows. An error leaves no file.
  virtual asio::awaitable<Result<OutputPaths>> create_output(store::v1::CreatedWith created_with,
                                                             std::string exec_id) = 0;
  // The exec was refused: removes the files that create_output() created, if any.
  virtual asio::awaitable<void> discard_output(std::string exec_id) = 0;
  // The exec is accepted and never ran: opens its files for start_exec(), and does not suspend if
  // create_output() has just opened them. Discards what they have.
  virtual asio::awaitable<Result<>> open_output(std::string exec_id, store::v1::Exec record) = 0;
  // Closes the files of an exec that is not started now.
  virtual void close_output(const std::string& exec_id) = 0;
  // The end of what an exec has printed, on stderr if it printed anything there, otherwise on
  // stdout; printable, for people. Empty if nothing, or it cannot be read.
  virtual asio::awaitable<std::string> output_tail(store::v1::Exec record) = 0;
  // The exec is accepted and will never be started: appends the reason to its standard error, as
  // the last line. Repeating it changes nothing.
  virtual asio::awaitable<Result<>> explain_output(store::v1::Exec record, std::string reason) = 0;
  // Also sends the files that are open for it.
  virtual Result<> start_exec(const ExecOrder& order) = 0;
  // `grace` is the time between SIGTERM and SIGKILL.
  virtual Result<> cancel_exec(const std::string& exec_id, std::chrono::milliseconds grace) = 0;
  // A new place for a writer at the input of an exec. What is written to earlier ones from now on
  // is lost. EXEC_INPUT_CLOSED if the input has ended, or the command does not read it any more.
  virtual asio::awaitable<Result<ExecInput>> attach_input(std::string exec_id) = 0;
  // The input ends after what was written to the places of its writers, which must be closed.
  virtual Result<> end_input(const std::string& exec_id) = 0;
  virtual Result<> resize_terminal(const std::string& exec_id, TerminalSize size) = 0;
  // To the foreground process group of its terminal, or the process group of the command.
  virtual Result<> signal_exec(const std::string& exec_id, int number) = 0;
  // Call once its end is on disk.
  virtual Result<> forget_exec(const std::string& exec_id) = 0;

  // --- files of the running container ---
  // Has the guest copy files into or out of it through a pipe. `on_open` is called once, with our
  // end, unless it fails before. Returns what the guest reported, and does not use this handle any
  // more by then. Cancelling it ends the copy.
  virtual asio::awaitable<Result<FilesReport>> transfer_files(
      FileOrder order, std::function<void(FilePipe)> on_open) = 0;
};

// What a diagnosis of the place needs to know of the rest of the daemon.
struct PlaceDiagnosisRequest {
  Result<> isolation;                  // whether it is in place
  std::vector<std::string> resolvers;  // of new sandboxes
  std::filesystem::path store;
  std::filesystem::path lock_file;         // which the daemon holds
  std::filesystem::path engine_directory;  // empty if unknown
  // The nftables tables in which the engine accepts packets of containers; "name*" is a prefix.
  std::vector<std::string> engine_firewall_tables{};
};

class Place {
 public:
  virtual ~Place() = default;

  // Records what a sandbox that is created now keeps of this place.
  virtual void describe(store::v1::CreatedWith& created_with) const = 0;
  // Finds the sources of the spec's mounts, copies and builtin tools and refuses those that no
  // sandbox may see. On success they are paths without links, and what they are is in
  // `created_with`, with the groups of the GPUs if the spec asks for them.
  // `engine_directory` has the engine's files; it may be empty.
  virtual asio::awaitable<Result<std::unique_ptr<MountPins>>> resolve_mounts(
      v1::CreateSpec& spec, store::v1::CreatedWith& created_with, std::string engine_directory) = 0;
  // The first of these ports that something on the machine has, and who that is.
  virtual asio::awaitable<Result<std::optional<TakenPort>>> find_taken_port(PortMappings ports) = 0;
  // The listener outlives the handle.
  virtual std::unique_ptr<SandboxPlace> open(const std::string& sandbox_id,
                                             GuestListener& listener) = 0;
  // The handle of a companion's container, for execs. Facts that are passed to it are those of that
  // container: see facts_for_place(). Its guest is no PID 1, and comes and goes while the container
  // runs; what its container shows of the place is removed by the sandbox's own handle.
  virtual std::unique_ptr<SandboxPlace> open_companion(const std::string& sandbox_id,
                                                       const std::string& companion,
                                                       GuestListener& listener) = 0;
  // Closes the connection to every guest; they reconnect to the next daemon. Call before
  // destruction.
  virtual asio::awaitable<void> disconnect() = 0;

  // --- isolation ---
  // Puts it in place; call before any sandbox network is created. From then on `on_change` is
  // called whenever a change by another process was undone, and when that begins or ceases to fail.
  virtual asio::awaitable<Result<>> start_isolation(std::vector<Ipv4Address> resolvers,
                                                    std::function<void()> on_change) = 0;
  // The resolvers that sandboxes may reach.
  virtual asio::awaitable<Result<>> set_resolvers(std::vector<Ipv4Address> resolvers) = 0;
  // It stays in place, except with `remove_rules`, which means that no sandbox is known. No
  // callback follows.
  virtual asio::awaitable<Result<>> stop_isolation(bool remove_rules) = 0;
  virtual IsolationHealth isolation_health() const = 0;
  // Calls `on_change` with the resolvers of the machine, at first and whenever they change, until
  // it is cancelled. Returns at once if they are configured.
  virtual asio::awaitable<void> follow_resolvers(
      std::function<void(const std::vector<Ipv4Address>&)> on_change) = 0;

  // What the kernel refuses this user now, and to whom it granted it, for people. Empty if nothing.
  // Does not wait: who has it may be missing at first.
  virtual std::string limits_shortcoming() = 0;

  // --- upkeep ---
  // Removes what is left of sandboxes that are not claimed, and returns what it removed, for
  // people. The claims are requested after listing, so that none is outdated.
  virtual asio::awaitable<Result<std::vector<std::string>>> remove_unclaimed(
      std::function<std::set<std::string>()> claimed_sandbox_ids) = 0;
  // The sandboxes with output below today's root, which others may use as well.
  virtual asio::awaitable<Result<std::vector<std::string>>> list_outputs() = 0;
  // Removes the output of all execs of a sandbox; repeating it is no error.
  virtual asio::awaitable<Result<>> remove_output(std::string sandbox_id,
                                                  store::v1::CreatedWith created_with) = 0;
  // The checks of `agbox doctor` that read the machine.
  virtual asio::awaitable<v1::DiagnoseResponse> diagnose(PlaceDiagnosisRequest request) = 0;
};

}  // namespace agbox
