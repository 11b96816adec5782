// SPDX-License-Identifier: Apache-2.0
// agbox diff: what an agent changed in a copied workspace.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/printable.h"
#include "cli/format/table.h"
#include "cli/interrupt.h"
#include "cli/workspace/changes.h"
#include "cli/workspace/colored_patch.h"
#include "cli/workspace/record.h"
#include "cli/workspace/saved_state.h"

namespace agbox::cli {

namespace {

constexpr std::size_t kColumns = 80;

struct DiffFlags {
  std::string session;
  bool stat = false;
  bool list = false;
  bool quiet = false;
  bool json = false;
};

int fail_diff(Console& console, const Error& error) {
  console.failure("diff: " + error.message(),
                  {.reason = std::string(error.reason().name), .metadata = error.metadata()});
  return kRuntimeError;
}

std::string written_text(const WorkspaceRecord& record, WallTime now) {
  const auto written = std::chrono::floor<std::chrono::seconds>(
      std::chrono::file_clock::to_sys(record.written_at()));
  google::protobuf::Timestamp time;
  time.set_seconds(written.time_since_epoch().count());
  return age_text(time, now) + " ago";
}

std::string files_json(const WorkspaceRecord& record, const std::vector<ChangedFile>& files) {
  std::string out;
  for (const ChangedFile& file : files) {
    out += (out.empty() ? "" : ",") + std::string("\n    {\"path\": ") + json_quote(file.path) +
           ", \"status\": " + json_quote(std::string(1, file.status)) +
           ", \"added\": " + std::to_string(file.added) +
           ", \"deleted\": " + std::to_string(file.deleted) +
           ", \"binary\": " + (file.is_binary ? "true" : "false") +
           ", \"link_target\": " + (file.is_link ? json_quote(file.link_target) : "null") + "}";
  }
  return "{\n  \"sandbox_id\": " + json_quote(record.sandbox_id()) +
         ",\n  \"workspace\": " + json_quote(record.workspace().string()) + ",\n  \"files\": [" +
         out + (out.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

int list_sessions(Console& console, const DiffFlags& flags) {
  const auto records = WorkspaceRecord::list();
  if (!records) return fail_diff(console, records.error());
  Table table({"SANDBOX ID", "AGENT", "WRITTEN", "CHANGES", "WORKSPACE"});
  std::string json;
  const WallTime now = SystemClock().wall_now();
  for (const WorkspaceRecord& record : *records) {
    const bool is_saved = !record.store().object(kSavedTree).empty();
    const std::string changes =
        is_saved ? WorkspaceChanges(record, kBaseTree, kSavedTree).summary().value_or("") : "";
    if (flags.quiet) console.out(printable_line(record.sandbox_id()) + "\n");
    if (flags.json) {
      json += (json.empty() ? "" : ",") + std::string("\n    {\"sandbox_id\": ") +
              json_quote(record.sandbox_id()) + ", \"agent\": " + json_quote(record.agent()) +
              ", \"workspace\": " + json_quote(record.workspace().string()) +
              ", \"changes\": " + json_quote(changes) + "}";
    }
    table.add({record.sandbox_id(), record.agent(), written_text(record, now),
               is_saved ? (changes.empty() ? "none" : changes) : "not saved yet",
               record.workspace().string()});
  }
  if (flags.json) {
    console.out("{\n  \"sessions\": [" + json + (json.empty() ? "]\n}\n" : "\n  ]\n}\n"));
  } else if (!flags.quiet) {
    console.out(table.text(console.out_columns()));
  }
  return kSuccess;
}

bool wants_colors() {
  const char* const refused = std::getenv("NO_COLOR");
  return refused == nullptr || *refused == '\0';
}

int print_changes(Console& console, const WorkspaceRecord& record, const DiffFlags& flags) {
  const WorkspaceChanges changes(record, kBaseTree, kSavedTree);
  if (flags.json) {
    const auto files = changes.files();
    if (!files) return fail_diff(console, files.error());
    console.out(files_json(record, *files));
    return kSuccess;
  }
  const auto text =
      flags.stat ? changes.stat(console.out_columns().value_or(kColumns)) : changes.patch();
  if (!text) return fail_diff(console, text.error());
  // Otherwise every byte matters: it is a patch.
  console.out(::isatty(STDOUT_FILENO) == 1 ? colored_patch(*text, !flags.stat && wants_colors())
                                           : *text);
  return kSuccess;
}

int diff(Console& console, const DiffFlags& flags) {
  if (flags.list) return list_sessions(console, flags);
  if (flags.session.empty()) {
    return refuse_usage(console, "diff requires a sandbox ID; see agbox diff --list");
  }
  const auto record = WorkspaceRecord::find(flags.session);
  if (!record) return fail_diff(console, record.error());
  const auto lock = record->lock();
  if (!lock) return fail_diff(console, lock.error());
  const Interrupt interrupt;
  if (const auto code = update_saved_tree(console, *record, interrupt)) return *code;
  return print_changes(console, *record, flags);
}

}  // namespace

void add_diff(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "diff", "Show what an agent changed in its copy of a workspace", diff);
  command.add_option("session", flags.session, "Sandbox ID of the agent session, or its beginning");
  command.add_flag("--stat", flags.stat, "Print only how much changed in each file");
  CLI::Option* list = command.add_flag("--list", flags.list, "List the sessions that are recorded");
  command.add_flag("-q,--quiet", flags.quiet, "With --list: print only sandbox IDs")->needs(list);
  command.add_flag("--json", flags.json, "Print the changed files as JSON");
}

}  // namespace agbox::cli
