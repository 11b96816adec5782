// SPDX-License-Identifier: Apache-2.0
// agbox sandbox list, alias agbox ps: all sandboxes, newest first.

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/field_format.h"
#include "cli/format/message_json.h"
#include "cli/format/sandbox_text.h"
#include "cli/format/table.h"
#include "cli/id_lookup.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

namespace {

struct ListFlags {
  explicit ListFlags(CLI::App& command)
      : labels(command, "-l,--label", "List only sandboxes with this label (repeatable)") {}

  KeyValueFlag labels;
  bool include_deleted = false;
  bool quiet = false;
  bool json = false;
  std::string format;
};

Table table_of(const v1::ListSandboxesResponse& list, WallTime now) {
  Table table({"SANDBOX ID", "CREATED", "STATUS", "LABELS", "ERROR"});
  for (const v1::SandboxHandle& sandbox : list.sandboxes()) {
    const std::string created =
        sandbox.has_created_at() ? age_text(sandbox.created_at(), now) + " ago" : "-";
    std::string status = state_text(sandbox.state());
    if (sandbox.has_state_changed_at()) status += " " + age_text(sandbox.state_changed_at(), now);
    table.add(
        {sandbox.sandbox_id(), created, status, labels_text(sandbox), sandbox.error_message()});
  }
  return table;
}

int list_sandboxes(Console& console, const ListFlags& flags) {
  const auto labels = flags.labels.values();
  if (!labels) return refuse_usage(console, labels.error());
  const auto format = FieldFormat::parse(flags.format, *v1::SandboxHandle::descriptor());
  if (!format) return refuse_usage(console, format.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::ListSandboxesRequest request;
  request.set_include_deleted(flags.include_deleted);
  request.mutable_label_selector()->insert(labels->begin(), labels->end());
  const auto list = list_all_sandboxes(*client, request);
  if (!list) return fail_call(console, "list sandboxes", list.error());
  if (flags.json) {
    console.out(message_json(*list));
  } else if (flags.quiet) {
    for (const auto& sandbox : list->sandboxes()) console.out(sandbox.sandbox_id() + "\n");
  } else if (*format) {
    for (const auto& sandbox : list->sandboxes()) console.out((*format)->line(sandbox));
  } else {
    console.out(table_of(*list, SystemClock().wall_now()).text(console.out_columns()));
  }
  return kSuccess;
}

// Both spellings of the command have the same flags.
void add_list(CommandLine& line, CLI::App& parent, const std::string& name) {
  auto [command, flags] = line.add(parent, name, "List sandboxes, newest first", list_sandboxes);
  command.add_flag("-a,--include-deleted,--all", flags.include_deleted,
                   "Include deleted sandboxes whose history is still kept");
  CLI::Option* json = command.add_flag("--json", flags.json, "Print JSON");
  CLI::Option* quiet =
      command.add_flag("-q,--quiet", flags.quiet, "Print only the sandbox IDs")->excludes(json);
  add_format_flag(command, flags.format)->excludes(json)->excludes(quiet);
}

}  // namespace

void add_sandbox_list(CommandLine& line, CLI::App& parent) {
  add_list(line, parent, "list");
}

void add_ps(CommandLine& line, CLI::App& parent) {
  add_list(line, parent, "ps");
}

}  // namespace agbox::cli
