// SPDX-License-Identifier: Apache-2.0
// agbox sandbox get: prints one sandbox, one field per line. agbox inspect prints several, which it
// finds by the beginnings of their IDs too.
#include <vector>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/printable.h"
#include "cli/format/sandbox_text.h"
#include "cli/id_lookup.h"
#include "model/spec/ports.h"

namespace agbox::cli {

namespace {

struct GetFlags {
  std::string sandbox_id;
  bool json = false;
};

std::string mode_text(const v1::BuiltinResource& resource) {
  if (resource.socket()) return "socket";
  if (resource.shadow_copy()) return "shadow copy, writable";
  return resource.writable() ? "writable" : "read-only";
}

std::string text_of(const v1::SandboxHandle& sandbox) {
  std::string out;
  const auto add = [&out](const std::string& name, const std::string& value) {
    out += name + "=" + printable_line(value) + "\n";
  };
  add("sandbox_id", sandbox.sandbox_id());
  add("state", state_text(sandbox.state()));
  add("image", sandbox.image());
  if (sandbox.has_created_at()) add("created_at", second_text(sandbox.created_at()));
  if (!sandbox.labels().empty()) add("labels", labels_json(sandbox));
  if (sandbox.has_lease_ttl()) add("lease_ttl", duration_text(sandbox.lease_ttl()));
  for (const v1::MountSpec& mount : sandbox.mounts()) {
    add("mount", mount.source() + " -> " + mount.target() +
                     (mount.writable() ? " (writable)" : " (read-only)"));
  }
  for (const v1::CopySpec& copy : sandbox.copies()) {
    add("copy", copy.source() + " -> " + copy.target());
  }
  for (const v1::BuiltinResource& resource : sandbox.builtin_resources()) {
    add("builtin_tool", resource.tool() + " " + resource.id() + ": " + resource.source() + " -> " +
                            resource.target() + " (" + mode_text(resource) + ")");
  }
  for (const v1::PortMapping& port : sandbox.ports()) {
    add("port", std::string(kPublishAddress) + ":" + std::to_string(port.host_port()) + " -> " +
                    std::to_string(port.container_port()) + "/" +
                    std::string(protocol_name(port.protocol())));
  }
  for (const v1::CompanionStatus& companion : sandbox.companions()) {
    add("companion", companion_text(companion));
  }
  for (const std::string& warning : sandbox.warnings()) add("warning", warning);
  if (!sandbox.error_code().empty()) {
    add("error_code", sandbox.error_code());
    add("error_message", sandbox.error_message());
  }
  if (sandbox.restart_count() > 0) add("restart_count", std::to_string(sandbox.restart_count()));
  if (!sandbox.last_exit().empty()) add("last_exit", sandbox.last_exit());
  if (!sandbox.isolation_problem().empty()) {
    add("paused", sandbox.paused() ? "true" : "false");
    add("isolation_problem", sandbox.isolation_problem());
  }
  if (!sandbox.isolation_unverified().empty()) {
    add("isolation_unverified", sandbox.isolation_unverified());
  }
  return out;
}

int get_sandbox(Console& console, const GetFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::GetSandboxRequest request;
  request.set_sandbox_id(flags.sandbox_id);
  const auto response = client->get_sandbox(request);
  if (!response) return fail_call(console, "get sandbox", response.error());
  console.out(flags.json ? message_json(*response) : text_of(response->sandbox()));
  return kSuccess;
}

struct InspectFlags {
  std::vector<std::string> sandbox_ids;
  bool json = false;
};

int inspect_sandboxes(Console& console, const InspectFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  for (const std::string& given : flags.sandbox_ids) {
    auto found = find_sandbox(*client, given);
    if (!found) return fail_call(console, "get sandbox", found.error());
    v1::GetSandboxResponse response;
    *response.mutable_sandbox() = *std::move(found);
    if (&given != &flags.sandbox_ids.front() && !flags.json) console.out("\n");
    console.out(flags.json ? message_json(response) : text_of(response.sandbox()));
  }
  return kSuccess;
}

}  // namespace

void add_sandbox_get(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "get", "Show a sandbox", get_sandbox);
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID")->required();
  command.add_flag("--json", flags.json, "Print JSON");
}

void add_inspect(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "inspect", "Show sandboxes", inspect_sandboxes);
  command.add_option("sandbox_id", flags.sandbox_ids, "Sandbox IDs, or their beginnings")
      ->required();
  command.add_flag("--json", flags.json, "Print JSON, an object for each");
}

}  // namespace agbox::cli
