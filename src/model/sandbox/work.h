// SPDX-License-Identifier: Apache-2.0
// What a sandbox does next, as a pure table: advance() takes the state of its work and something
// that happened, and returns the next state with what to record, which operation to start or cancel
// and which timers to set. Nothing here knows a thread, a clock or a disk.
//
// A state is a Lifecycle with the work that is due or in progress in it:
//
//   Creating   Create, UndoCreate           Stopped    Idle, Inspect
//   Resuming   Resume, UndoResume           Failed     Idle, Inspect, CleanUp, Halt
//   Ready      Idle, Inspect,               Deleting   Delete
//              AwaitRestart, Restart,       Deleted    Idle
//              Pause, Unpause
//   Stopping   Stop
//
// A container that should run:
//
//   guest lost, engine event, gap in events -> Inspect -> it runs: Idle, the guest reconnects
//                                                      -> it cannot be used: Failed
//                                                      -> it ended: AwaitRestart -> Restart -> Idle
//                                                      -> its command is done: Stop
//
// One whose isolation fails a verification while it runs:
//
//   failed -> Pause -> Idle, verified again from outside at growing intervals
//             -> it holds: Unpause -> verified again, now also from inside -> it holds: no problem
//                                                                          -> failed, or no
//                                                                             answer: Pause
//
// One whose guest is missing or does not answer is verified from inside as soon as it does, is
// reported as unverified after 30 s, and is then verified every 30 s.
//
// One operation runs at a time. If it is no longer the one that the work asks for, it is cancelled,
// and its result changes nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "model/sandbox/crash_window.h"
#include "model/sandbox/lifecycle.h"
#include "model/sandbox/restart_plan.h"

namespace agbox {

enum class OperationKind {
  Create,      // make it and bring it to ready
  StartOver,   // remove what an earlier attempt left, then create
  UndoCreate,  // remove what a failed create made; bounded in time
  Resume,      // bring what was stopped back to ready
  UndoResume,  // stop what a failed resume started
  Stop,        // end what runs in it, and its container
  Delete,
  CleanUp,  // remove what a failed create left, however long it takes
  Inspect,  // find out whether its container still runs as it was started
  Restart,  // start a container that should run
  Halt,     // stop what runs of one whose record cannot be read
  Pause,    // freeze its containers, because its isolation does not hold
  Unpause,
};

// How an attempt at an operation ended.
enum class OperationEnd {
  Done,
  Refused,    // the engine or the host said no
  Retry,      // the engine was not reached, or the host cannot do it for a while
  Lost,       // its container ended, or may have, before the guest had said why
  Cancelled,  // it is no longer wanted
};

namespace work {

struct Idle {
  bool operator==(const Idle&) const = default;
};
struct Create {
  enum class Attempt {
    First,
    Recovered,  // begun by an earlier run of the daemon; not counted by this one yet
    Again,
  };
  Attempt attempt = Attempt::First;
  unsigned lost_starts = 0;
  bool operator==(const Create&) const = default;
};
struct UndoCreate {
  Failure failure;  // reported once it is undone
  bool operator==(const UndoCreate&) const = default;
};
struct Resume {
  unsigned lost_starts = 0;
  bool operator==(const Resume&) const = default;
};
struct UndoResume {
  Failure failure;
  unsigned lost_starts = 0;
  bool operator==(const UndoResume&) const = default;
};
struct Stop {
  unsigned refusals = 0;
  bool operator==(const Stop&) const = default;
};
struct Delete {
  bool operator==(const Delete&) const = default;
};
struct CleanUp {
  bool operator==(const CleanUp&) const = default;
};
struct Halt {
  std::optional<Failure> unreported;  // reported once its container is stopped and its execs ended
  bool operator==(const Halt&) const = default;
};
struct Inspect {
  bool again = false;  // what the running one sees may be older than what asked for this one
  bool operator==(const Inspect&) const = default;
};
struct AwaitRestart {  // the restart timer
  bool operator==(const AwaitRestart&) const = default;
};
struct Restart {
  bool operator==(const Restart&) const = default;
};
struct Pause {
  // An earlier attempt may have done it: then a paused container is paused by us.
  bool may_be_done = false;
  bool inspects = false;  // afterwards, because the container was doubted
  bool operator==(const Pause&) const = default;
};
struct Unpause {
  bool inspects = false;
  bool operator==(const Unpause&) const = default;
};

}  // namespace work

using Work =
    std::variant<work::Idle, work::Create, work::UndoCreate, work::Resume, work::UndoResume,
                 work::Stop, work::Delete, work::CleanUp, work::Halt, work::Inspect,
                 work::AwaitRestart, work::Restart, work::Pause, work::Unpause>;

namespace activity {

struct None {
  bool operator==(const None&) const = default;
};
struct Running {
  OperationKind kind = OperationKind::Create;
  bool operator==(const Running&) const = default;
};
struct BackingOff {  // before the next attempt at an operation
  bool operator==(const BackingOff&) const = default;
};

}  // namespace activity

using Activity = std::variant<activity::None, activity::Running, activity::BackingOff>;

// What is known of the isolation of a sandbox that should run.
struct IsolationState {
  // Why its latest verification failed. Empty: none has, or it holds again.
  std::string problem{};
  enum class Paused {
    No,     // or by others
    Begun,  // decided, and perhaps done
    Yes,
  };
  Paused paused = Paused::No;  // by us; kept until its containers are known to run or to be gone
  // Unpaused because everything holds that can be verified from outside. If the verification from
  // inside fails after that, the next unpause is not before `earliest_unpause`. A guest that does
  // not answer twice fails it too: it may be hostile.
  enum class Released {
    No,
    Unpaused,
    Unanswered,
  };
  Released released = Released::No;
  BootTime earliest_unpause{0};
  unsigned failures = 0;  // in a row; of this run of the daemon
  // Since when its guest is missing or does not answer, and it is verified from outside at best.
  // Only without a problem, and of this run of the daemon.
  std::optional<BootTime> unanswered_since{};
  // Why it was not verified from inside for kUnverifiedAfter. Empty if it was.
  std::string unverified{};

  bool operator==(const IsolationState&) const = default;
};

// How its container ended and was restarted since it was created.
struct RestartState {
  std::uint64_t count = 0;  // completed restarts
  // See exit_text(); empty: it never ended while it should run.
  std::string last_exit{};

  bool operator==(const RestartState&) const = default;
};

struct WorkState {
  LifecycleStatus lifecycle;
  Work work;
  // At the operation in progress, by this run of the daemon and those before it.
  std::uint32_t attempts = 1;
  CrashWindow crashes{};  // of the container, while Ready
  Activity activity{};
  IsolationState isolation{};
  RestartState restarts{};

  bool operator==(const WorkState&) const = default;
};

// Of a sandbox that a client asks for.
WorkState new_work();
// What an earlier run of the daemon stored. `cleans_up`: a failed create may have left something.
// `is_restarting`: see below.
WorkState restored_work(LifecycleStatus lifecycle, bool cleans_up, std::uint32_t attempts,
                        IsolationState isolation = {}, RestartState restarts = {},
                        bool is_restarting = false);

bool cleans_up(const WorkState& state);
// Whether its container ended, which is reported, and is not reported as running again yet.
bool is_restarting(const WorkState& state);
// Whether its container should run now, and is not about to be started.
bool is_up(const WorkState& state);
// The operation that the work asks for.
std::optional<OperationKind> wanted_operation(const Work& work);

namespace input {

// Stored, and not begun before it is.
struct Accept {};
struct Begin {};
// The daemon starts: once, before anything else.
struct Recover {};
// The same for a sandbox whose record cannot be read.
struct RecoverUnreadable {
  Failure failure;
};

// Commands of clients, and of deadlines. decide() has accepted them.
struct Stop {
  std::string reason;
};
struct Resume {
  bool has_containers = false;  // see command::Resume
};
struct Delete {
  std::string reason;
};

// A create has come so far.
struct Progress {
  std::string phase;
};
// The running operation ended. What came of it counts only while it is wanted.
struct Ended {
  OperationEnd end = OperationEnd::Done;
  std::string message{};  // why it is not done
  // Of a failure that has its own, and that another attempt would meet again; otherwise empty.
  std::string code{};
  bool is_outdated = false;  // something of the sandbox was made in the engine while it was removed
  // What an Inspect, a Restart or a Pause saw and did not act on.
  std::optional<SandboxInspection> inspection{};
  bool is_paused_by_others = false;  // a Pause found it paused already
};

struct GuestConnected {};
struct GuestLost {};
// The engine reports that the container ended.
struct RecheckContainer {};
// The isolation was verified while the sandbox should run.
struct IsolationFailed {
  std::string why;
};
struct IsolationHolds {
  bool from_inside = false;  // too; not if it is paused or its guest did not answer
};
// The engine is reachable again, and its events of the time between are lost. What waits before it
// is tried again waits no longer.
struct EngineBack {};

struct BackoffOver {};
struct RestartDue {};

}  // namespace input

using WorkInput =
    std::variant<input::Accept, input::Begin, input::Recover, input::RecoverUnreadable, input::Stop,
                 input::Resume, input::Delete, input::Progress, input::Ended, input::GuestConnected,
                 input::GuestLost, input::RecheckContainer, input::EngineBack, input::BackoffOver,
                 input::RestartDue, input::IsolationFailed, input::IsolationHolds>;

// What is true at the moment of an input.
struct Surroundings {
  BootTime now{0};
  bool has_engine = false;  // the sandbox's own is reachable
  bool is_guest_connected = false;
  bool has_execs = false;
  bool is_shutting_down = false;
  bool pauses_unisolated = false;  // isolation.on_failure
};

// What becomes of the sandbox's execs, in the same change.
enum class ExecsChange {
  Keep,
  Cancel,  // the guest is asked to end them; no more are accepted
  End,     // they are over, and no more are accepted
  EndUnsent,
  EndForRestart,  // those that ran are over; others wait for the restart
};

// One change of the store.
struct Record {
  std::vector<LifecycleEvent> events{};
  ExecsChange execs = ExecsChange::Keep;
  std::optional<ContainerLoss> loss{};  // why they ended; cancelled if nothing
  bool has_new_secret = false;          // for the next start of its container
  bool has_objects = false;             // what is known of its containers and its network
  bool has_operation = false;           // events imply it
  bool has_isolation = false;           // its problem, and whether it is paused
  bool has_restarts = false;            // their state, and whether one is in progress
  enum class Then { Nothing, IsLive, IsRestarted, IsDeleted };
  Then then = Then::Nothing;  // once it is on disk

  bool operator==(const Record&) const = default;
};

struct WorkStep {
  std::optional<Record> record{};
  std::optional<OperationKind> start{};
  bool cancels = false;  // the running operation
  enum class Backoff { Keep, Begin, End };
  Backoff backoff = Backoff::Keep;
  bool resets_backoff = false;  // the next pause is as short as the first
  std::optional<std::chrono::milliseconds> restart_in{};
  bool clears_restart = false;
  // The isolation is verified again after this long; 0: now.
  std::optional<std::chrono::milliseconds> verify_in{};
  bool clears_verification = false;
  // A shutdown is not the create's doing: its attempt is not counted.
  bool uncounts_attempt = false;
  bool takes_guest = false;  // the guest that connected, with its execs

  bool operator==(const WorkStep&) const = default;
};

struct WorkTransition {
  WorkState state;
  WorkStep step;
};

WorkTransition advance(WorkState state, const WorkInput& input, const Surroundings& now);

// A create that takes the daemon down with it is not repeated forever.
inline constexpr std::uint32_t kMostAttempts = 3;
// An engine that restarts ends every container, also one that is being started. One that ends by
// itself does so each time.
inline constexpr unsigned kLostStartsForgiven = 2;
// An engine may refuse a stop for a moment. FAILED is for one that keeps refusing.
inline constexpr unsigned kStopRefusalsForgiven = 3;
// Between verifications of an isolation that does not hold. A repair does not wait for them.
inline constexpr std::chrono::milliseconds kFirstVerificationWait{500};
inline constexpr std::chrono::milliseconds kLongestVerificationWait{30'000};
// A guest reconnects within a second, unless it is starved or something keeps it out.
inline constexpr std::chrono::milliseconds kUnverifiedAfter{30'000};

}  // namespace agbox
