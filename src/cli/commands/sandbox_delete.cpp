// SPDX-License-Identifier: Apache-2.0
// agbox sandbox delete: deletes one sandbox, or all with the given labels, and waits until they are
// gone.
#include <agbox/sandbox_wait.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

namespace {

struct DeleteFlags {
  explicit DeleteFlags(CLI::App& command)
      : labels(command, "--label", "Delete all sandboxes with this label (repeatable)"),
        sandbox_id(command.add_option("sandbox_id", id, "Sandbox ID")) {}

  KeyValueFlag labels;
  std::string id;
  CLI::Option* sandbox_id;
};

class Deletion {
 public:
  Deletion(Console& console, const sdk::RawClient& client) : console_(console), client_(client) {}

  int delete_one(const std::string& id);
  int delete_labelled(const std::map<std::string, std::string>& labels);

 private:
  // The daemon completes an accepted deletion even if the wait is interrupted.
  sdk::Result<void> wait(const std::string& id, const Interrupt& interrupt) const {
    return sdk::wait_for_sandbox(client_, id, sdk::SandboxGoal::Deleted,
                                 {.follow = {.stop = interrupt.token()}});
  }
  void report(const sdk::Error& error) const {
    if (error.kind == sdk::ErrorKind::SandboxFailed) {
      console_.error(error.message + "\n  Try again:          agbox sandbox delete " +
                     error.sandbox_id());
    } else {
      fail_call(console_, "wait for sandbox state", error);
    }
  }
  int stopped(const Interrupt& interrupt) const {
    console_.error("Stopped waiting; the daemon continues the deletion.");
    return interrupt.exit_code();
  }
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
  console_.error("Waiting for sandbox " + id + " to be deleted...");
  const auto deleted = wait(id, interrupt);
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
  const int count = accepted->deleted_sandbox_ids_size();
  if (count == 0) {
    console_.error("No sandboxes matched the label selector.");
    return kSuccess;
  }
  const Interrupt interrupt;
  console_.error("Waiting for " + std::to_string(count) + " sandbox(es) to be deleted...");
  // The daemon deletes them concurrently, so the order of waiting does not matter.
  int deleted_count = 0;
  for (const std::string& id : accepted->deleted_sandbox_ids()) {
    const auto deleted = wait(id, interrupt);
    if (deleted) {
      ++deleted_count;
    } else if (deleted.error().kind == sdk::ErrorKind::Cancelled) {
      return stopped(interrupt);
    } else {
      report(deleted.error());
    }
  }
  const bool is_whole = deleted_count == count;
  console_.error((is_whole ? "" : std::to_string(deleted_count) + " of ") + std::to_string(count) +
                 " sandbox(es) deleted in " + time_taken() + ".");
  return is_whole ? kSuccess : kRuntimeError;
}

int delete_sandboxes(Console& console, const DeleteFlags& flags) {
  const bool has_id = flags.sandbox_id->count() > 0;
  if (has_id && flags.labels.is_given()) {
    return refuse_usage(console, "sandbox delete <sandbox_id> and --label are mutually exclusive");
  }
  if (!has_id && !flags.labels.is_given()) {
    return refuse_usage(console, "sandbox delete requires <sandbox_id> or at least one --label");
  }
  const auto labels = flags.labels.values();
  if (!labels) return refuse_usage(console, labels.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  Deletion deletion(console, *client);
  return has_id ? deletion.delete_one(flags.id) : deletion.delete_labelled(*labels);
}

}  // namespace

void add_sandbox_delete(CommandLine& line, CLI::App& parent) {
  line.add(parent, "delete",
           "Delete one sandbox, or all with a label, and wait until they are gone",
           delete_sandboxes);
}

}  // namespace agbox::cli
