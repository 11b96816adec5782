// SPDX-License-Identifier: Apache-2.0
// agbox apply: brings what an agent changed back into the workspace that it had a copy of.
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/printable.h"
#include "cli/interrupt.h"
#include "cli/workspace/changes.h"
#include "cli/workspace/record.h"
#include "cli/workspace/saved_state.h"

namespace agbox::cli {

namespace {

struct ApplyFlags {
  std::string session;
  bool force = false;
  bool allow_repositories = false;
};

int fail_apply(Console& console, const std::string& why) {
  console.failure("apply: " + why);
  return kRuntimeError;
}

void warn_of_links(Console& console, const std::vector<ChangedFile>& files) {
  for (const ChangedFile& file : files) {
    if (!file.is_link || !leads_out(file.path, file.link_target)) continue;
    console.error("Warning: " + printable_line(file.path) +
                  " is a link that leads out of the workspace, to " +
                  printable_line(file.link_target));
  }
}

int apply_changes(Console& console, const WorkspaceRecord& record, const ApplyFlags& flags) {
  const GitStore store = record.store();
  const bool was_applied = !store.object(kAppliedTree).empty();
  const WorkspaceChanges changes(record, was_applied ? kAppliedTree : kBaseTree, kSavedTree);
  const auto summary = changes.summary();
  if (!summary) return fail_apply(console, summary.error().message());
  const std::string workspace = record.workspace().string();
  if (summary->empty()) {
    console.error(was_applied
                      ? "Nothing has changed since the changes were applied to " + workspace + "."
                      : "No files changed.");
    return kSuccess;
  }
  std::error_code problem;
  if (!std::filesystem::is_directory(record.workspace(), problem)) {
    return fail_apply(console, workspace + " does not exist any more; agbox diff " +
                                   record.sandbox_id() + " prints the patch");
  }
  if (!flags.allow_repositories) {
    const auto hidden = changes.hidden_repositories();
    if (!hidden) return fail_apply(console, hidden.error().message());
    if (!hidden->empty()) {
      return fail_apply(console, printable_line(hidden->front()) +
                                     " is or would become a Git repository without a .git. Its "
                                     "configuration can name programs, which git runs there.\nRead "
                                     "it with agbox diff, and use --allow-repositories if you "
                                     "want it");
    }
  }
  if (!flags.force) {
    const auto uncommitted = changes.uncommitted();
    if (!uncommitted) return fail_apply(console, uncommitted.error().message());
    if (!uncommitted->empty()) {
      return fail_apply(console, *uncommitted +
                                     "\nCommit or stash them, or use --force: the changes are then "
                                     "applied where they fit");
    }
  }
  const auto files = changes.files();
  if (!files) return fail_apply(console, files.error().message());
  if (const auto applied = changes.apply(record.workspace()); !applied) {
    return fail_apply(console, applied.error().message() + "\n  Show changes:       agbox diff " +
                                   record.sandbox_id());
  }
  if (const auto noted = store.run({"update-ref", kAppliedTree, kSavedTree}); !noted) {
    return fail_apply(
        console, "the changes were applied, but not recorded as such: " + noted.error().message());
  }
  warn_of_links(console, *files);
  console.error("Applied to " + workspace + ": " + *summary);
  return kSuccess;
}

int apply(Console& console, const ApplyFlags& flags) {
  const auto record = WorkspaceRecord::find(flags.session);
  if (!record) return fail_apply(console, record.error().message());
  const auto lock = record->lock();
  if (!lock) return fail_apply(console, lock.error().message());
  const Interrupt interrupt;
  if (const auto code = update_saved_tree(console, *record, interrupt)) return *code;
  return apply_changes(console, *record, flags);
}

}  // namespace

void add_apply(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(
      parent, "apply", "Apply what an agent changed to the workspace that it had a copy of", apply);
  command.add_option("session", flags.session, "Sandbox ID of the agent session, or its beginning")
      ->required();
  command.add_flag("--force", flags.force, "Also if the workspace has uncommitted changes");
  command.add_flag("--allow-repositories", flags.allow_repositories,
                   "Also if a Git repository without a .git is hidden in what is applied");
}

}  // namespace agbox::cli
