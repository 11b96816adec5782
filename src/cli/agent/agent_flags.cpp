// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/agent_flags.h"

#include <sstream>
#include <utility>

#include "base/uuid.h"
#include "cli/default_image.h"
#include "model/spec/config_yaml.h"

namespace agbox::cli {

namespace {

constexpr std::int64_t kInteractiveIdleSeconds = 240 * 3600;
constexpr std::size_t kIdSuffix = 6;

std::unexpected<CreateRefusal> refuse_flags(std::string message) {
  return std::unexpected(CreateRefusal{kUsageError, std::move(message)});
}

// What an agent is given that is not in its definition; flags override it.
void set_defaults(AgentDefinition& agent) {
  if (agent.spec.image().empty()) agent.spec.set_image(kDefaultImage);
  if (!agent.spec.has_idle_ttl()) {
    agent.spec.mutable_idle_ttl()->set_seconds(
        agent.mode == AgentMode::Interactive ? kInteractiveIdleSeconds : 0);
  }
  auto& labels = *agent.spec.mutable_labels();
  labels["created-by"] = "agbox-cli";
  labels["agent-type"] = agent.name;
}

}  // namespace

AgentFlags::AgentFlags(CLI::App& command) : create_(command, CreateFlags::Image::Override) {
  const auto text = [&command](const std::string& name, std::string& value, const std::string& type,
                               const std::string& description) {
    return command.add_option(name, value, description)->type_name(type)->take_last();
  };
  command_flag_ = text("--command", command_, "COMMAND",
                       "Command of the agent, split at spaces, instead of its own");
  text("--mode", mode_, "interactive|long-running",
       "interactive: the command has this terminal, and the sandbox is deleted after it; "
       "long-running: it runs until the sandbox is deleted");
  workspace_flag_ = text(
      "--workspace", workspace_, "DIR[:MODE]",
      "Directory that the agent works on as /workspace (default: this one, or none if the agent is "
      "long-running by its file), and how: copy (the default), mount or mount:ro; copy, mount, "
      "mount:ro or none alone are about this directory");
  command.add_flag("--keep", keep_, "Do not delete the sandbox");
  command.add_flag("-y,--yes", yes_, "Answer yes to every question");
  command.add_flag("--no-input", no_input_, "Fail instead of asking");
  command.add_flag("--no-start", no_start_, "Do not start the daemon if it is not running");
  text("--detach-keys", detach_keys_, "KEYS",
       "Key sequence to leave the agent running (default ctrl-p,ctrl-q)");
}

std::expected<std::vector<std::string>, CreateRefusal> AgentFlags::words() const {
  std::istringstream text(command_);
  std::vector<std::string> out;
  for (std::string word; text >> word;) out.push_back(word);
  if (out.empty()) return refuse_flags("--command must not be empty");
  return out;
}

std::expected<AgentPlan, CreateRefusal> AgentFlags::plan_of_command() const {
  if (!has_command()) {
    return refuse_flags(
        "agbox agent requires --command; for pre-registered agents use agbox claude / agbox codex "
        "/ agbox openclaw / agbox paseo\n  List the agents:    agbox agent --list");
  }
  const auto command = words();
  if (!command) return std::unexpected(command.error());
  AgentDefinition agent;
  agent.name = command->front();
  agent.agent_command = *command;
  return planned(std::move(agent));
}

std::expected<AgentPlan, CreateRefusal> AgentFlags::plan(AgentDefinition agent) const {
  auto plan = planned(std::move(agent));
  if (!plan) return plan;
  plan->asks_about_git = plan->agent.mode == AgentMode::Interactive;
  // Known by what it is.
  if (plan->agent.mode == AgentMode::LongRunning && !create_.has_sandbox_id()) {
    plan->request.set_sandbox_id(plan->agent.name + "-" + random_uuid().substr(0, kIdSuffix));
  }
  return plan;
}

std::expected<AgentPlan, CreateRefusal> AgentFlags::planned(AgentDefinition agent) const {
  AgentPlan plan;
  plan.keeps = keep_;
  plan.answers_yes = yes_;
  plan.may_ask = !no_input_;
  plan.starts_daemon = !no_start_;
  const AgentMode former_mode = agent.mode;
  if (!mode_.empty()) {
    const auto mode = parse_mode(mode_);
    if (!mode) return refuse_flags("--mode must be \"interactive\" or \"long-running\"");
    agent.mode = *mode;
  }
  // In the other mode, the same command runs in the other way.
  auto& own_command = *agent.spec.mutable_command();
  if (former_mode == AgentMode::Interactive && agent.mode == AgentMode::LongRunning) {
    own_command.Assign(agent.agent_command.begin(), agent.agent_command.end());
  } else if (former_mode == AgentMode::LongRunning && agent.mode == AgentMode::Interactive) {
    agent.agent_command.assign(own_command.begin(), own_command.end());
    own_command.Clear();
  }
  std::vector<std::string> command;
  if (has_command()) {
    auto given = words();
    if (!given) return std::unexpected(given.error());
    command = std::move(*given);
    if (agent.mode == AgentMode::Interactive) agent.agent_command = command;
  }
  const auto workspace = workspace_flag_->count() > 0 ? parse_workspace_flag(workspace_)
                                                      : current_workspace(agent.workspace);
  if (!workspace) return refuse_flags(workspace.error());
  plan.workspace = *workspace;
  auto keys = DetachKeys::parse(detach_keys_);
  if (!keys) return refuse_flags(keys.error().message());
  plan.detach_keys = std::move(*keys);
  auto request = create_.request({});
  if (!request) return std::unexpected(request.error());
  if (!request->config_yaml().empty()) {
    auto file = parse_config_yaml(request->config_yaml());
    if (!file) return refuse_flags("invalid --yaml-file: " + file.error().message());
    agent.spec = merge_create_specs(std::move(agent.spec), *file);
    request->clear_config_yaml();
  }
  set_defaults(agent);
  plan.request = std::move(*request);
  *plan.request.mutable_create_spec() = merge_create_specs(agent.spec, plan.request.create_spec());
  if (!command.empty() && agent.mode == AgentMode::LongRunning) {
    plan.request.mutable_create_spec()->mutable_command()->Assign(command.begin(), command.end());
  }
  plan.agent = std::move(agent);
  return plan;
}

}  // namespace agbox::cli
