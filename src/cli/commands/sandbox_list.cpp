// SPDX-License-Identifier: Apache-2.0
// agbox sandbox list: all sandboxes, newest first.

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/for_each_page.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/sandbox_text.h"
#include "cli/format/table.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

namespace {

struct ListFlags {
  explicit ListFlags(CLI::App& command)
      : labels(command, "--label", "List only sandboxes with this label (repeatable)") {}

  KeyValueFlag labels;
  bool include_deleted = false;
  bool json = false;
};

std::string table_of(const v1::ListSandboxesResponse& list, WallTime now) {
  Table table({"SANDBOX ID", "CREATED", "STATUS", "LABELS", "ERROR"});
  for (const v1::SandboxHandle& sandbox : list.sandboxes()) {
    const std::string created =
        sandbox.has_created_at() ? age_text(sandbox.created_at(), now) + " ago" : "-";
    std::string status = state_text(sandbox.state());
    if (sandbox.has_state_changed_at()) status += " " + age_text(sandbox.state_changed_at(), now);
    table.add(
        {sandbox.sandbox_id(), created, status, labels_text(sandbox), sandbox.error_message()});
  }
  return table.text();
}

int list_sandboxes(Console& console, const ListFlags& flags) {
  const auto labels = flags.labels.values();
  if (!labels) return refuse_usage(console, labels.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::ListSandboxesRequest request;
  request.set_include_deleted(flags.include_deleted);
  request.mutable_label_selector()->insert(labels->begin(), labels->end());
  v1::ListSandboxesResponse list;
  const auto read = for_each_page(
      request, [&](const v1::ListSandboxesRequest& page) { return client->list_sandboxes(page); },
      [&list](const v1::ListSandboxesResponse& page) {
        list.mutable_sandboxes()->MergeFrom(page.sandboxes());
      });
  if (!read) return fail_call(console, "list sandboxes", read.error());
  console.out(flags.json ? message_json(list) : table_of(list, SystemClock().wall_now()));
  return kSuccess;
}

}  // namespace

void add_sandbox_list(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "list", "List sandboxes, newest first", list_sandboxes);
  command.add_flag("--include-deleted", flags.include_deleted,
                   "Include deleted sandboxes whose history is still kept");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace agbox::cli
