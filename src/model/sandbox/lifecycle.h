// SPDX-License-Identifier: Apache-2.0
// The life of a sandbox as a pure state machine: decide() says what a command leads to, apply()
// what an event does to the state. Nothing here knows a thread, a clock or a disk.
//
//                 +--------------------- Delete, from every state ---------------------+
//                 |                                                                     v
//   (create) -> Creating --ok--> Ready --Stop--> Stopping --ok--> Stopped          Deleting --ok-->
//   Deleted
//                 |               |  ^              |                 |                |
//                 |               |  +----ok----- Resuming <--Resume--+                |
//                 |               |                 |   ^                              |
//                 |               |                 |   +--Resume--+                   |
//                 +---refused-----+-----lost--------+--------> Failed <---refused------+
//
// An operation in progress is a state of its own, so it cannot be started twice and recovery knows
// what to continue. Clients see fewer states: see public_state().
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agbox/v1/event.pb.h"
#include "agbox/v1/sandbox.pb.h"
#include "base/result.h"

namespace agbox {

enum class Lifecycle {
  Creating,  // apart from Resuming: a create starts over after a crash, a resume never makes
             // anything
  Resuming,
  Ready,
  Stopping,  // apart from Ready: a second stop adds nothing, an exec is refused
  Stopped,
  Failed,
  Deleting,
  Deleted,
};

struct LifecycleStatus {
  Lifecycle state = Lifecycle::Creating;
  // Why the stop or delete in progress was requested, or the latest stop of a stopped sandbox; the
  // completing event repeats it.
  std::string reason;

  bool operator==(const LifecycleStatus&) const = default;
};

// Why a sandbox is FAILED: a code for programs, a sentence for people.
struct Failure {
  std::string code;
  std::string message;

  bool operator==(const Failure&) const = default;
};

namespace command {

struct Stop {
  std::string reason;
};
struct Resume {
  bool has_containers = false;  // without them a FAILED sandbox cannot be resumed
};
struct Delete {
  std::string reason;
};
// Asks whether an exec may start; leads to no event of the sandbox's own life.
struct StartExec {
  std::string failure_code{};   // of a FAILED sandbox
  bool has_containers = false;  // as in Resume
};
// One more attempt at making it: the first, or after a crash of the daemon.
struct Prepare {
  std::string phase;
};
// The operation in progress ended. Only the current operation is reported; a late report of an
// older one never reaches decide().
struct Succeed {};
struct Refuse {
  Failure failure;
};
// The primary container is gone for good, as the reconciler judges it.
struct LosePrimary {
  Failure failure;
};

}  // namespace command

using LifecycleCommand =
    std::variant<command::Stop, command::Resume, command::Delete, command::StartExec,
                 command::Prepare, command::Succeed, command::Refuse, command::LosePrimary>;

namespace event {

struct Accepted {
  bool operator==(const Accepted&) const = default;
};
struct Preparing {
  std::string phase;
  std::string message{};  // for people
  bool operator==(const Preparing&) const = default;
};
struct Ready {
  bool operator==(const Ready&) const = default;
};
struct Failed {
  Failure failure;
  bool operator==(const Failed&) const = default;
};
struct StopRequested {
  std::string reason;
  bool operator==(const StopRequested&) const = default;
};
struct Stopped {
  std::string reason;
  bool operator==(const Stopped&) const = default;
};
struct DeleteRequested {
  std::string reason;
  bool operator==(const DeleteRequested&) const = default;
};
struct Deleted {
  std::string reason;
  bool operator==(const Deleted&) const = default;
};

}  // namespace event

using LifecycleEvent =
    std::variant<event::Accepted, event::Preparing, event::Ready, event::Failed,
                 event::StopRequested, event::Stopped, event::DeleteRequested, event::Deleted>;

// The events that the command leads to; none if it is accepted but changes nothing; an error if the
// state forbids it.
Result<std::vector<LifecycleEvent>> decide(const std::string& sandbox_id,
                                           const LifecycleStatus& lifecycle,
                                           const LifecycleCommand& command);

LifecycleStatus apply(LifecycleStatus lifecycle, const LifecycleEvent& event);

// Whether a sandbox that failed with this code still has its container and its network, as far as
// is known. A delete that failed may have removed some of it.
bool has_containers_after(std::string_view failure_code);

v1::SandboxState public_state(Lifecycle state);

// The event as clients get it: type, details and the state after it. The store adds its place.
v1::SandboxEvent to_message(const std::string& sandbox_id, const LifecycleStatus& after,
                            const LifecycleEvent& event);

}  // namespace agbox
