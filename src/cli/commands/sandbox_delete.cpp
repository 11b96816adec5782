// SPDX-License-Identifier: Apache-2.0
// agbox sandbox delete: deletes one sandbox, or all with the given labels, and waits until they are
// gone. agbox rm is the same command for docker's users, with several IDs or their beginnings.
// agbox prune deletes what does not run.
#include <agbox/sandbox_wait.h>
#include <unistd.h>

#include <optional>
#include <vector>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/confirmation.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/sandbox_text.h"
#include "cli/id_lookup.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

struct DeleteFlags {
  explicit DeleteFlags(CLI::App& command)
      : labels(command, "-l,--label", "Delete all sandboxes with this label (repeatable)") {}

  KeyValueFlag labels;
  std::string id;
  CLI::Option* sandbox_id = nullptr;  // one or several
};

// `command`: "sandbox delete". Why the command line is refused, if it is.
std::optional<std::string> refusal(const DeleteFlags& flags, const std::string& command) {
  const bool has_id = flags.sandbox_id->count() > 0;
  if (has_id && flags.labels.is_given()) {
    return command + " <sandbox_id> and --label are mutually exclusive";
  }
  if (!has_id && !flags.labels.is_given()) {
    return command + " requires <sandbox_id> or at least one --label";
  }
  const auto labels = flags.labels.values();
  return labels ? std::nullopt : std::optional(labels.error());
}

class Deletion {
 public:
  Deletion(Console& console, const sdk::RawClient& client) : console_(console), client_(client) {}

  int delete_one(const std::string& id);
  int delete_all(const std::vector<std::string>& ids);
  int delete_labelled(const std::map<std::string, std::string>& labels);

 private:
  // The daemon completes an accepted deletion even if the wait is interrupted.
  sdk::Result<void> wait(const std::string& id, const Interrupt& interrupt) const {
    return sdk::wait_for_sandbox(client_, id, sdk::SandboxGoal::Deleted,
                                 {.follow = {.stop = interrupt.token()}});
  }
  void report(const sdk::Error& error) const {
    if (error.kind == sdk::ErrorKind::SandboxFailed) {
      fail(console_,
           error.message + "\n  Try again:          agbox sandbox delete " + error.sandbox_id(),
           error);
    } else {
      fail_call(console_, "wait for sandbox state", error);
    }
  }
  int stopped(const Interrupt& interrupt) const {
    console_.error("Stopped waiting; the daemon continues the deletion.");
    return interrupt.exit_code();
  }
  int wait_for_all(const std::vector<std::string>& ids, std::size_t wanted) const;
  std::string time_taken() const { return seconds_text(clock_.boot_now() - began_); }

  Console& console_;
  const sdk::RawClient& client_;
  SystemClock clock_;
  BootTime began_ = clock_.boot_now();
};

int Deletion::delete_one(const std::string& id) {
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id);
  const auto accepted = client_.delete_sandbox(request, kNoTimeout);
  if (!accepted) return fail_call(console_, "delete sandbox", accepted.error());
  const Interrupt interrupt;
  const std::string what = "Waiting for sandbox " + id + " to be deleted";
  console_.error(what + "...");
  const auto deleted = [&] {
    const WaitReport waiting(console_, clock_, what);
    return wait(id, interrupt);
  }();
  if (deleted) {
    console_.error("Sandbox deleted in " + time_taken() + ".");
    return kSuccess;
  }
  if (deleted.error().kind == sdk::ErrorKind::Cancelled) return stopped(interrupt);
  report(deleted.error());
  return kRuntimeError;
}

int Deletion::delete_labelled(const std::map<std::string, std::string>& labels) {
  v1::DeleteSandboxesRequest request;
  request.mutable_label_selector()->insert(labels.begin(), labels.end());
  const auto accepted = client_.delete_sandboxes(request, kNoTimeout);
  if (!accepted) return fail_call(console_, "delete sandboxes", accepted.error());
  if (accepted->deleted_sandbox_ids().empty()) {
    console_.error("No sandboxes matched the label selector.");
    return kSuccess;
  }
  const std::vector<std::string> ids(accepted->deleted_sandbox_ids().begin(),
                                     accepted->deleted_sandbox_ids().end());
  return wait_for_all(ids, ids.size());
}

int Deletion::delete_all(const std::vector<std::string>& ids) {
  std::vector<std::string> accepted;
  for (const std::string& id : ids) {
    v1::DeleteSandboxRequest request;
    request.set_sandbox_id(id);
    const auto response = client_.delete_sandbox(request, kNoTimeout);
    if (response) {
      accepted.push_back(id);
    } else {
      fail_call(console_, "delete sandbox", response.error());
    }
  }
  return accepted.empty() ? kRuntimeError : wait_for_all(accepted, ids.size());
}

// Of `wanted` sandboxes the daemon deletes these.
int Deletion::wait_for_all(const std::vector<std::string>& ids, std::size_t wanted) const {
  const Interrupt interrupt;
  const std::string what =
      "Waiting for " + std::to_string(ids.size()) + " sandbox(es) to be deleted";
  console_.error(what + "...");
  // The daemon deletes them concurrently, so the order of waiting does not matter.
  std::size_t deleted_count = 0;
  {
    const WaitReport waiting(console_, clock_, what);
    for (const std::string& id : ids) {
      const auto deleted = wait(id, interrupt);
      if (deleted) {
        ++deleted_count;
      } else if (deleted.error().kind == sdk::ErrorKind::Cancelled) {
        return stopped(interrupt);
      } else {
        report(deleted.error());
      }
    }
  }
  const bool is_whole = deleted_count == wanted;
  console_.error((is_whole ? "" : std::to_string(deleted_count) + " of ") + std::to_string(wanted) +
                 " sandbox(es) deleted in " + time_taken() + ".");
  return is_whole ? kSuccess : kRuntimeError;
}

int delete_sandboxes(Console& console, const DeleteFlags& flags) {
  if (const auto why = refusal(flags, "sandbox delete")) return refuse_usage(console, *why);
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  Deletion deletion(console, *client);
  return flags.sandbox_id->count() > 0 ? deletion.delete_one(flags.id)
                                       : deletion.delete_labelled(*flags.labels.values());
}

struct RmFlags : DeleteFlags {
  using DeleteFlags::DeleteFlags;
  std::vector<std::string> ids;
  bool force = false;
};

int remove_sandboxes(Console& console, const RmFlags& flags) {
  if (const auto why = refusal(flags, "rm")) return refuse_usage(console, *why);
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  Deletion deletion(console, *client);
  if (flags.ids.empty()) return deletion.delete_labelled(*flags.labels.values());
  std::vector<std::string> ids;
  for (const std::string& given : flags.ids) {
    auto found = find_sandbox(*client, given);
    if (!found) return fail_call(console, "delete sandbox", found.error());
    ids.push_back(found->sandbox_id());
  }
  return ids.size() == 1 ? deletion.delete_one(ids.front()) : deletion.delete_all(ids);
}

struct PruneFlags {
  explicit PruneFlags(CLI::App& command)
      : labels(command, "-l,--label", "Only sandboxes with this label (repeatable)") {}

  KeyValueFlag labels;
  bool force = false;
};

int prune(Console& console, const PruneFlags& flags) {
  const auto labels = flags.labels.values();
  if (!labels) return refuse_usage(console, labels.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::ListSandboxesRequest request;
  request.mutable_label_selector()->insert(labels->begin(), labels->end());
  const auto list = list_all_sandboxes(*client, request);
  if (!list) return fail_call(console, "list sandboxes", list.error());
  std::vector<std::string> ids;
  std::string lines;
  for (const v1::SandboxHandle& sandbox : list->sandboxes()) {
    if (sandbox.state() != v1::SANDBOX_STATE_STOPPED &&
        sandbox.state() != v1::SANDBOX_STATE_FAILED) {
      continue;
    }
    ids.push_back(sandbox.sandbox_id());
    lines += "\n  " + sandbox.sandbox_id() + "  " + state_text(sandbox.state());
  }
  if (ids.empty()) {
    console.error("No sandbox is stopped or failed.");
    return kSuccess;
  }
  if (!flags.force) {
    console.error("These sandboxes and their files would be deleted:" + lines);
    if (::isatty(STDIN_FILENO) == 0) {
      return refuse_usage(console, "prune asks first, and stdin is no terminal: use --force");
    }
    if (!is_confirmed(console, "Delete them?")) return kRuntimeError;
  }
  return Deletion(console, *client).delete_all(ids);
}

}  // namespace

void add_sandbox_delete(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(
      parent, "delete", "Delete one sandbox, or all with a label, and wait until they are gone",
      delete_sandboxes);
  flags.sandbox_id = command.add_option("sandbox_id", flags.id, "Sandbox ID");
}

void add_prune(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "prune", "Delete all sandboxes that are stopped or failed", prune);
  command.add_flag("-f,--force", flags.force, "Do not ask");
}

void add_rm(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "rm", "Delete sandboxes and wait until they are gone", remove_sandboxes);
  flags.sandbox_id =
      command.add_option("sandbox_id", flags.ids, "Sandbox IDs, or their beginnings");
  command.add_flag("-f,--force", flags.force,
                   "Accepted for docker's users: a running sandbox is deleted in any case");
}

}  // namespace agbox::cli
