// SPDX-License-Identifier: Apache-2.0
// agbox exec list: lists running execs; with --all also ended ones.
#include <vector>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/for_each_page.h"
#include "cli/format/exec_text.h"
#include "cli/format/message_json.h"
#include "cli/format/table.h"

namespace agbox::cli {

namespace {

struct ExecListFlags {
  std::string id;
  CLI::Option* sandbox_id = nullptr;
  bool all = false;
  bool json = false;
};

template <class List>
std::string table_of(const List& list) {
  Table table({"EXEC ID", "SANDBOX ID", "STATE", "COMMAND"});
  for (const v1::ExecStatus& exec : list.execs()) {
    table.add({exec.exec_id(), exec.sandbox_id(), state_text(exec.state()), command_text(exec)});
  }
  return table.text();
}

template <class List>
int show(Console& console, const ExecListFlags& flags, const List& list) {
  console.out(flags.json ? message_json(list) : table_of(list));
  return kSuccess;
}

sdk::Result<v1::ListExecsResponse> execs_of(const sdk::RawClient& client,
                                            const std::string& sandbox_id) {
  v1::ListExecsRequest request;
  request.set_sandbox_id(sandbox_id);
  v1::ListExecsResponse all;
  const auto read = for_each_page(
      request, [&](const v1::ListExecsRequest& page) { return client.list_execs(page); },
      [&all](const v1::ListExecsResponse& page) { all.mutable_execs()->MergeFrom(page.execs()); });
  if (!read) return std::unexpected(read.error());
  return all;
}

// Includes deleted sandboxes whose history is still kept.
sdk::Result<v1::ListExecsResponse> execs_of_all(const sdk::RawClient& client) {
  std::vector<std::string> ids;
  v1::ListSandboxesRequest request;
  request.set_include_deleted(true);
  const auto listed = for_each_page(
      request, [&](const v1::ListSandboxesRequest& page) { return client.list_sandboxes(page); },
      [&ids](const v1::ListSandboxesResponse& page) {
        for (const auto& sandbox : page.sandboxes()) ids.push_back(sandbox.sandbox_id());
      });
  if (!listed) return std::unexpected(listed.error());
  v1::ListExecsResponse all;
  for (const std::string& id : ids) {
    const auto execs = execs_of(client, id);
    // Its history was removed since it was listed.
    if (!execs && execs.error().kind == sdk::ErrorKind::SandboxNotFound) continue;
    if (!execs) return std::unexpected(execs.error());
    all.mutable_execs()->MergeFrom(execs->execs());
  }
  return all;
}

int list_execs(Console& console, const ExecListFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const bool is_of_one = flags.sandbox_id->count() > 0;
  if (flags.all) {
    const auto list = is_of_one ? execs_of(*client, flags.id) : execs_of_all(*client);
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
  command.add_flag("-a,--all", flags.all, "Include ended execs, oldest first");
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace agbox::cli
