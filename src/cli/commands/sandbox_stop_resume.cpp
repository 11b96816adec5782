// SPDX-License-Identifier: Apache-2.0
// agbox sandbox stop and agbox sandbox resume, for docker's users agbox stop and agbox start:
// request a change of state and wait until it is reached. A stop keeps the files of the sandbox.
#include <agbox/sandbox_wait.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/phase_report.h"
#include "cli/interrupt.h"
#include "cli/sandbox_selection.h"

namespace agbox::cli {

namespace {

struct Stop {
  static constexpr const char* kVerb = "stop";
  static constexpr const char* kFlatVerb = "stop";
  static constexpr const char* kTitle = "Stop";
  static constexpr const char* kDone = "stopped";
  static constexpr const char* kHelp =
      "Stop a sandbox, keep its files, and wait until it is stopped";
  static constexpr const char* kFlatHelp =
      "Stop sandboxes, keep their files, and wait until they are stopped";
  static constexpr auto kFrom = v1::SANDBOX_STATE_READY;
  static constexpr auto kGoal = sdk::SandboxGoal::Stopped;
  static constexpr auto kSend = &sdk::RawClient::stop_sandbox;
  using Request = v1::StopSandboxRequest;
};

struct Resume {
  static constexpr const char* kVerb = "resume";
  static constexpr const char* kFlatVerb = "start";
  static constexpr const char* kTitle = "Resume";
  static constexpr const char* kDone = "resumed";
  static constexpr const char* kHelp = "Start a stopped sandbox and wait until it is ready";
  static constexpr const char* kFlatHelp = "Resume stopped sandboxes and wait until they are ready";
  static constexpr auto kFrom = v1::SANDBOX_STATE_STOPPED;
  static constexpr auto kGoal = sdk::SandboxGoal::Resumed;
  static constexpr auto kSend = &sdk::RawClient::resume_sandbox;
  using Request = v1::ResumeSandboxRequest;
};

template <class Change, Spelling Form>
struct StateFlags {
  explicit StateFlags(CLI::App& command) : selection(command, Form, Change::kTitle) {
    command.add_flag("--json", json,
                     std::string("Print the sandbox as JSON once it is ") + Change::kDone);
  }

  SandboxSelection selection;
  bool json = false;
};

// Changes the state of sandboxes that the user named, all at the same time.
template <class Change>
class StateChange {
 public:
  StateChange(Console& console, const sdk::RawClient& client, bool json)
      : console_(console), client_(client), json_(json) {}

  int exit_code(const std::vector<std::string>& ids) {
    const std::vector<std::string> accepted = request(ids);
    if (accepted.empty()) return kRuntimeError;
    const Interrupt interrupt;
    const std::string what =
        "Waiting for " + (ids.size() == 1 ? "sandbox " + ids.front() : counted(accepted.size())) +
        " to be " + Change::kDone;
    console_.error(what + "...");
    std::vector<std::string> done;
    {
      PhaseReport phases(console_, clock_, what);
      for (const std::string& id : accepted) {
        const auto reached = sdk::wait_for_sandbox(
            client_, id, Change::kGoal,
            {.follow = {.stop = interrupt.token()},
             .on_event = [&phases](const v1::SandboxEvent& event) { phases.show(event); }});
        if (reached) {
          done.push_back(id);
        } else if (reached.error().kind == sdk::ErrorKind::Cancelled) {
          console_.error(std::string("Stopped waiting; the daemon continues the ") + Change::kVerb +
                         ".");
          return interrupt.exit_code();
        } else {
          report(reached.error());
        }
      }
    }
    if (ids.size() > 1 || !done.empty()) report_done(ids.size(), done.size());
    if (json_ && !print(done)) return kRuntimeError;
    return done.size() == ids.size() ? kSuccess : kRuntimeError;
  }

 private:
  static std::string counted(std::size_t number) { return std::to_string(number) + " sandbox(es)"; }

  // Those for which the daemon has accepted it.
  std::vector<std::string> request(const std::vector<std::string>& ids) {
    std::vector<std::string> accepted;
    for (const std::string& id : ids) {
      typename Change::Request order;
      order.set_sandbox_id(id);
      const auto response = (client_.*Change::kSend)(order, kNoTimeout);
      if (response) {
        accepted.push_back(id);
      } else {
        fail_call(console_, std::string(Change::kVerb) + " sandbox", response.error());
      }
    }
    return accepted;
  }

  void report(const sdk::Error& error) {
    if (error.kind != sdk::ErrorKind::SandboxFailed) {
      fail_call(console_, "wait for sandbox state", error);
      return;
    }
    fail(console_,
         error.message + "\n  Show sandbox:       agbox sandbox get " + error.sandbox_id() +
             "\n  Delete sandbox:     agbox sandbox delete " + error.sandbox_id(),
         error);
  }

  void report_done(std::size_t wanted, std::size_t done) {
    std::string subject = "Sandbox";
    if (wanted > 1) {
      subject = (done < wanted ? std::to_string(done) + " of " : std::string()) + counted(wanted);
    }
    console_.error(subject + " " + Change::kDone + " in " +
                   seconds_text(clock_.boot_now() - began_) + ".");
  }

  bool print(const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      v1::GetSandboxRequest request;
      request.set_sandbox_id(id);
      const auto now = client_.get_sandbox(request);
      if (!now) {
        fail_call(console_, "get sandbox", now.error());
        return false;
      }
      console_.out(message_json(*now));
    }
    return true;
  }

  Console& console_;
  const sdk::RawClient& client_;
  const bool json_;
  const SystemClock clock_;
  const BootTime began_ = clock_.boot_now();
};

template <class Change, Spelling Form>
int change_state(Console& console, const StateFlags<Change, Form>& flags) {
  if (const auto refusal = flags.selection.refusal(Change::kFlatVerb)) {
    return refuse_usage(console, *refusal);
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const auto ids = flags.selection.ids(*client, Change::kFrom);
  if (!ids) return fail_call(console, std::string(Change::kVerb) + " sandbox", ids.error());
  if (ids->empty()) {
    console.error("No sandboxes matched the label selector.");
    return kSuccess;
  }
  return StateChange<Change>(console, *client, flags.json).exit_code(*ids);
}

template <class Change>
void add_exact(CommandLine& line, CLI::App& parent) {
  line.add(parent, Change::kVerb, Change::kHelp, change_state<Change, Spelling::Exact>);
}

template <class Change>
void add_flat(CommandLine& line, CLI::App& parent) {
  line.add(parent, Change::kFlatVerb, Change::kFlatHelp, change_state<Change, Spelling::Flat>);
}

}  // namespace

void add_sandbox_resume(CommandLine& line, CLI::App& parent) {
  add_exact<Resume>(line, parent);
}

void add_sandbox_stop(CommandLine& line, CLI::App& parent) {
  add_exact<Stop>(line, parent);
}

void add_start(CommandLine& line, CLI::App& parent) {
  add_flat<Resume>(line, parent);
}

void add_stop(CommandLine& line, CLI::App& parent) {
  add_flat<Stop>(line, parent);
}

}  // namespace agbox::cli
