// SPDX-License-Identifier: Apache-2.0
// agbox exec list: lists running execs; with --all also ended ones.
#include <agbox/exec_run.h>
#include <google/protobuf/util/time_util.h>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/for_each_page.h"
#include "cli/format/elapsed.h"
#include "cli/format/exec_text.h"
#include "cli/format/field_format.h"
#include "cli/format/message_json.h"
#include "cli/format/table.h"
#include "cli/id_lookup.h"

namespace agbox::cli {

namespace {

struct ExecListFlags {
  std::string id;
  CLI::Option* sandbox_id = nullptr;
  bool all = false;
  bool quiet = false;
  bool json = false;
  std::string format;
};

Table table_of(const google::protobuf::RepeatedPtrField<v1::ExecStatus>& execs) {
  Table table({"EXEC ID", "SANDBOX ID", "STATE", "COMMAND"});
  for (const v1::ExecStatus& exec : execs) {
    table.add({exec.exec_id(), exec.sandbox_id(), state_text(exec.state()), command_text(exec)});
  }
  return table;
}

// How long it ran, or has run so far.
std::string duration_of(const v1::ExecStatus& exec, WallTime now) {
  if (!exec.has_started_at()) return "-";
  if (!exec.has_ended_at()) return age_text(exec.started_at(), now);
  using google::protobuf::util::TimeUtil;
  const auto took = exec.ended_at() - exec.started_at();
  return seconds_text(std::chrono::nanoseconds(TimeUtil::DurationToNanoseconds(took)));
}

// With what is known of those that have ended.
Table long_table_of(const google::protobuf::RepeatedPtrField<v1::ExecStatus>& execs, WallTime now) {
  Table table({"EXEC ID", "SANDBOX ID", "STATE", "EXIT CODE", "DURATION", "COMMAND"});
  for (const v1::ExecStatus& exec : execs) {
    const bool has_code = sdk::is_terminal(exec.state());
    table.add({exec.exec_id(), exec.sandbox_id(), state_text(exec.state()),
               has_code ? std::to_string(exec.exit_code()) : "-", duration_of(exec, now),
               command_text(exec)});
  }
  return table;
}

template <class List>
int show(Console& console, const ExecListFlags& flags, const List& list) {
  const auto format = FieldFormat::parse(flags.format, *v1::ExecStatus::descriptor());
  if (!format) return refuse_usage(console, format.error());
  if (flags.json) {
    console.out(message_json(list));
  } else if (flags.quiet) {
    for (const auto& exec : list.execs()) console.out(exec.exec_id() + "\n");
  } else if (*format) {
    for (const auto& exec : list.execs()) console.out((*format)->line(exec));
  } else {
    const Table table =
        flags.all ? long_table_of(list.execs(), SystemClock().wall_now()) : table_of(list.execs());
    console.out(table.text(console.out_columns()));
  }
  return kSuccess;
}

int list_execs(Console& console, const ExecListFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const bool is_of_one = flags.sandbox_id->count() > 0;
  if (flags.all) {
    const auto list = is_of_one ? list_execs_of(*client, flags.id) : list_all_execs(*client);
    if (!list) return fail_call(console, "list execs", list.error());
    return show(console, flags, *list);
  }
  v1::ListActiveExecsRequest request;
  if (is_of_one) request.set_sandbox_id(flags.id);
  v1::ListActiveExecsResponse list;
  const auto read = for_each_page(
      request,
      [&](const v1::ListActiveExecsRequest& page) { return client->list_active_execs(page); },
      [&list](const v1::ListActiveExecsResponse& page) {
        list.mutable_execs()->MergeFrom(page.execs());
      });
  if (!read) return fail_call(console, "list active execs", read.error());
  // The call also returns an empty list for a sandbox that does not exist.
  if (is_of_one && list.execs().empty()) {
    v1::GetSandboxRequest get;
    get.set_sandbox_id(flags.id);
    const auto sandbox = client->get_sandbox(get);
    if (!sandbox) return fail_call(console, "list active execs", sandbox.error());
  }
  return show(console, flags, list);
}

}  // namespace

void add_exec_list(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "list", "List execs: those that run, or all", list_execs);
  flags.sandbox_id = command.add_option("sandbox_id", flags.id, "List only execs of this sandbox");
  command.add_flag("-a,--all", flags.all,
                   "Include ended execs, oldest first, with exit codes and durations");
  CLI::Option* json = command.add_flag("--json", flags.json, "Print JSON");
  CLI::Option* quiet =
      command.add_flag("-q,--quiet", flags.quiet, "Print only the exec IDs")->excludes(json);
  add_format_flag(command, flags.format)->excludes(json)->excludes(quiet);
}

}  // namespace agbox::cli
