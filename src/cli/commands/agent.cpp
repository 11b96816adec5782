// SPDX-License-Identifier: Apache-2.0
// agbox agent, and a command for each agent that agbox knows: agbox claude and so on.
#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/agent/agent_flags.h"
#include "cli/agent/builtin_definitions.h"
#include "cli/agent/session.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/printable.h"
#include "cli/format/table.h"

namespace agbox::cli {

namespace {

struct NamedAgentFlags : AgentFlags {
  using AgentFlags::AgentFlags;

  std::string agent;
  bool list = false;
  bool quiet = false;
  bool json = false;
};

int run_named(Console& console, const NamedAgentFlags& flags) {
  auto definition = find_agent_definition(flags.agent);
  if (!definition) return refuse_usage(console, definition.error().message());
  auto plan = flags.plan(std::move(*definition));
  if (plan) return run_agent(console, std::move(*plan));
  console.failure(plan.error().message);
  return plan.error().code;
}

std::string agents_json(const std::vector<ListedAgent>& agents) {
  std::string out;
  for (const ListedAgent& agent : agents) {
    out += (out.empty() ? "" : ",") + std::string("\n    {\"name\": ") + json_quote(agent.name) +
           ", \"mode\": " + json_quote(mode_text(agent.definition.mode)) +
           ", \"workspace\": " + json_quote(workspace_mode_text(agent.definition.workspace)) +
           ", \"source\": " + json_quote(agent.source) +
           ", \"description\": " + json_quote(agent.definition.description) +
           ", \"problem\": " + json_quote(agent.problem) + "}";
  }
  return "{\n  \"agents\": [" + out + (out.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

int list_agents(Console& console, const NamedAgentFlags& flags) {
  const auto agents = list_agent_definitions();
  if (!agents) {
    console.failure(agents.error().message());
    return kRuntimeError;
  }
  if (flags.json) {
    console.out(agents_json(*agents));
    return kSuccess;
  }
  Table table({"NAME", "MODE", "WORKSPACE", "SOURCE", "DESCRIPTION"});
  for (const ListedAgent& agent : *agents) {
    if (flags.quiet) {
      console.out(agent.name + "\n");
    } else if (agent.problem.empty()) {
      table.add({agent.name, mode_text(agent.definition.mode),
                 workspace_mode_text(agent.definition.workspace), agent.source,
                 agent.definition.description});
    } else {
      table.add({agent.name, "-", "-", agent.source, agent.problem});
    }
  }
  if (!flags.quiet) console.out(table.text(console.out_columns()));
  return kSuccess;
}

int run_any(Console& console, const NamedAgentFlags& flags) {
  if (flags.list) return list_agents(console, flags);
  if (!flags.agent.empty()) return run_named(console, flags);
  auto plan = flags.plan_of_command();
  if (plan) return run_agent(console, std::move(*plan));
  console.failure(plan.error().message);
  return plan.error().code;
}

struct PaseoUrlFlags {
  std::string sandbox_id;
};

int print_paseo_url(Console& console, const PaseoUrlFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  std::string errors;
  const auto output = output_of_command(*client, flags.sandbox_id,
                                        {"/usr/local/bin/paseo", "daemon", "pair"}, errors);
  if (output) {
    console.out(printable(*output));
    return kSuccess;
  }
  static_cast<void>(console.write_stderr(printable(errors)));
  console.failure(output.error());
  return kRuntimeError;
}

}  // namespace

void add_agent(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "agent", "Run an agent of your own, or any command, in a sandbox", run_any);
  command.add_option("agent", flags.agent,
                     "Agent: one of agbox, or NAME of $XDG_CONFIG_HOME/agents-sandbox/agents/"
                     "NAME.yaml");
  CLI::Option* list = command.add_flag("--list", flags.list, "List the agents");
  command.add_flag("-q,--quiet", flags.quiet, "With --list: print only names")->needs(list);
  command.add_flag("--json", flags.json, "With --list: print JSON")->needs(list);
}

void add_builtin_agents(CommandLine& line, CLI::App& parent) {
  for (const BuiltinDefinition& builtin : builtin_definitions()) {
    const std::string name(builtin.name);
    auto [command, flags] = line.add(parent, name, std::string(builtin.description), run_named);
    flags.agent = name;
    if (name != "paseo") continue;
    auto [url, url_flags] =
        line.add(command, "url", "Print the URL that pairs a client with it", print_paseo_url);
    url.add_option("sandbox_id", url_flags.sandbox_id, "Sandbox ID")->required();
  }
}

}  // namespace agbox::cli
