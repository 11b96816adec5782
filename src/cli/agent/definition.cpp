// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/definition.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/edit_distance.h"
#include "base/file_io.h"
#include "base/shown_path.h"
#include "base/unique_fd.h"
#include "base/utf8.h"
#include "cli/agent/builtin_definitions.h"
#include "model/spec/config_yaml.h"
#include "model/spec/maxima.h"
#include "model/spec/yaml.h"
#include "paths/fixed_paths.h"

namespace agbox::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSuffix = ".yaml";
constexpr const char* kBuiltin = "builtin";

// --- values ---

Result<std::string> string_of(const YamlNode& value, std::string_view name) {
  if (value.is_null()) return std::string();
  if (value.kind == YamlNode::Kind::Scalar) return value.text;
  return yaml_error(value, std::string(name) + " must be a string");
}

Result<std::vector<std::string>> strings_of(const YamlNode& value, std::string_view name) {
  const auto refused = [&] {
    return yaml_error(value, std::string(name) + " must be a list of strings that are not empty");
  };
  if (value.kind != YamlNode::Kind::List || value.items.empty()) return refused();
  std::vector<std::string> out;
  for (const YamlNodePtr& item : value.items) {
    if (item->kind != YamlNode::Kind::Scalar || item->text.empty()) return refused();
    out.push_back(item->text);
  }
  return out;
}

Result<bool> boolean_of(const YamlNode& value, std::string_view name) {
  if (value.is_plain && value.text == "true") return true;
  if (value.is_plain && value.text == "false") return false;
  return yaml_error(value, std::string(name) + " must be true or false");
}

// --- keys ---

template <class Target>
struct Key {
  std::string_view name;
  Result<> (*set)(Target& target, const YamlNode& value);
};

// "unknown key", with the nearest of `known`.
std::unexpected<Error> unknown_key(const YamlNode& key, const std::vector<std::string>& known) {
  const std::string_view word = utf8_prefix(key.text, 64);
  std::string nearest;
  std::size_t least = 3;  // a larger distance is another word
  for (const std::string& name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance >= least) continue;
    least = distance;
    nearest = name;
  }
  std::string message = "unknown key \"" + std::string(word) + "\"";
  if (!nearest.empty()) message += "; did you mean \"" + nearest + "\"?";
  return yaml_error(key, message);
}

template <class Target>
Result<> set_keys(Target& target, const YamlNode& map, std::span<const Key<Target>> keys,
                  std::string_view what) {
  if (map.kind != YamlNode::Kind::Map) {
    return yaml_error(map, std::string(what) + " must be a map");
  }
  for (const auto& [key, value] : map.entries) {
    const auto known = std::ranges::find(keys, key->text, &Key<Target>::name);
    if (known != keys.end()) {
      AGBOX_TRY_VOID(known->set(target, *value));
      continue;
    }
    std::vector<std::string> names;
    for (const Key<Target>& each : keys) names.emplace_back(each.name);
    return unknown_key(*key, names);
  }
  return {};
}

template <auto Member>
Result<> set_string(auto& target, const YamlNode& value, std::string_view name) {
  AGBOX_TRY(text, string_of(value, name));
  target.*Member = std::move(text);
  return {};
}

template <auto Member>
Result<> set_strings(auto& target, const YamlNode& value, std::string_view name) {
  AGBOX_TRY(words, strings_of(value, name));
  target.*Member = std::move(words);
  return {};
}

constexpr std::array<Key<AgentRequirement>, 3> kRequirementKeys = {
    {{"file",
      [](AgentRequirement& target, const YamlNode& value) {
        return set_string<&AgentRequirement::file>(target, value, "file");
      }},
     {"json",
      [](AgentRequirement& target, const YamlNode& value) {
        return set_string<&AgentRequirement::json>(target, value, "json");
      }},
     {"otherwise", [](AgentRequirement& target, const YamlNode& value) {
        return set_string<&AgentRequirement::otherwise>(target, value, "otherwise");
      }}}};

constexpr std::array<Key<ReadyValue>, 4> kReadyValueKeys = {
    {{"command",
      [](ReadyValue& target, const YamlNode& value) {
        return set_strings<&ReadyValue::command>(target, value, "command");
      }},
     {"file",
      [](ReadyValue& target, const YamlNode& value) {
        return set_string<&ReadyValue::file>(target, value, "file");
      }},
     {"json",
      [](ReadyValue& target, const YamlNode& value) {
        return set_string<&ReadyValue::json>(target, value, "json");
      }},
     {"prefix", [](ReadyValue& target, const YamlNode& value) {
        return set_string<&ReadyValue::prefix>(target, value, "prefix");
      }}}};

Result<> set_mode(AgentDefinition& agent, const YamlNode& value) {
  const auto mode = parse_mode(value.text);
  if (!mode) return yaml_error(value, "mode must be \"interactive\" or \"long-running\"");
  agent.mode = *mode;
  return {};
}

Result<> set_workspace(AgentDefinition& agent, const YamlNode& value) {
  const auto mode = parse_workspace_mode(value.text);
  if (!mode) return yaml_error(value, "workspace must be copy, mount, mount:ro or none");
  agent.workspace = *mode;
  return {};
}

Result<> set_requirements(AgentDefinition& agent, const YamlNode& value) {
  if (value.kind != YamlNode::Kind::List) return yaml_error(value, "requires must be a list");
  for (const YamlNodePtr& item : value.items) {
    AgentRequirement requirement;
    AGBOX_TRY_VOID(
        set_keys<AgentRequirement>(requirement, *item, kRequirementKeys, "an entry of requires"));
    if (requirement.file.empty()) return yaml_error(*item, "an entry of requires has no file");
    agent.requirements.push_back(std::move(requirement));
  }
  return {};
}

Result<> set_ready_values(AgentDefinition& agent, const YamlNode& value) {
  if (value.kind != YamlNode::Kind::Map) return yaml_error(value, "ready_values must be a map");
  for (const auto& [name, item] : value.entries) {
    ReadyValue ready;
    AGBOX_TRY_VOID(set_keys<ReadyValue>(ready, *item, kReadyValueKeys, "a ready value"));
    if (ready.command.empty() == ready.file.empty()) {
      return yaml_error(*item, "a ready value has either a command or a file");
    }
    agent.ready_values.emplace(name->text, std::move(ready));
  }
  return {};
}

constexpr std::array<Key<AgentDefinition>, 8> kAgentKeys = {
    {{"agent_command",
      [](AgentDefinition& agent, const YamlNode& value) {
        return set_strings<&AgentDefinition::agent_command>(agent, value, "agent_command");
      }},
     {"description",
      [](AgentDefinition& agent, const YamlNode& value) {
        return set_string<&AgentDefinition::description>(agent, value, "description");
      }},
     {"mode", set_mode},
     {"ready_text",
      [](AgentDefinition& agent, const YamlNode& value) {
        return set_string<&AgentDefinition::ready_text>(agent, value, "ready_text");
      }},
     {"ready_values", set_ready_values},
     {"requires", set_requirements},
     {"skip_missing_tools",
      [](AgentDefinition& agent, const YamlNode& value) -> Result<> {
        AGBOX_TRY(flag, boolean_of(value, "skip_missing_tools"));
        agent.skips_missing_tools = flag;
        return {};
      }},
     {"workspace", set_workspace}}};

// Those of the sandbox and ours.
std::vector<std::string> all_keys() {
  std::vector<std::string> names;
  for (const auto& key : kAgentKeys) names.emplace_back(key.name);
  const auto& type = *v1::CreateSpec::descriptor();
  for (int i = 0; i < type.field_count(); ++i) names.push_back(type.field(i)->name());
  return names;
}

Result<> check_commands(const AgentDefinition& agent, const YamlNode& root) {
  const bool is_interactive = agent.mode == AgentMode::Interactive;
  if (is_interactive && agent.agent_command.empty()) {
    return yaml_error(root, "agent_command is required; it runs in the terminal");
  }
  if (is_interactive && agent.spec.command_size() > 0) {
    return yaml_error(root,
                      "command is for the mode long-running; an interactive agent has "
                      "agent_command");
  }
  if (!is_interactive && !agent.agent_command.empty()) {
    return yaml_error(root,
                      "agent_command is for the mode interactive; a long-running agent has "
                      "command");
  }
  return {};
}

// --- files ---

bool is_agent_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }) && name.front() != '-';
}

Result<fs::path> users_directory() {
  return resolve_agent_definitions(current_platform(), current_environment());
}

Result<AgentDefinition> read_definition(const std::string& name, const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto text = file ? read_all(file.get(), maxima::kConfigYamlBytes) : std::unexpected(errno);
  if (!text) return std::unexpected(errno_error("read " + path.string(), text.error()));
  auto parsed = parse_agent_definition(name, *text);
  if (!parsed) return std::unexpected(parsed.error().within(path.string()));
  return parsed;
}

const BuiltinDefinition* find_builtin(std::string_view name) {
  const auto all = builtin_definitions();
  const auto found = std::ranges::find(all, name, &BuiltinDefinition::name);
  return found == all.end() ? nullptr : &*found;
}

ListedAgent listed(std::string name, std::string source, Result<AgentDefinition> parsed) {
  ListedAgent out{
      .name = std::move(name), .source = std::move(source), .problem = {}, .definition = {}};
  if (parsed) {
    out.definition = std::move(*parsed);
  } else {
    out.problem = parsed.error().message();
  }
  return out;
}

}  // namespace

Result<AgentDefinition> parse_agent_definition(const std::string& name, std::string_view yaml) {
  AGBOX_TRY(root, parse_yaml(yaml));
  if (root->is_null()) return yaml_error(*root, "the document is empty");
  if (root->kind != YamlNode::Kind::Map) return yaml_error(*root, "expected a map");
  AgentDefinition agent;
  agent.name = name;
  YamlNode sandbox = *root;
  sandbox.entries.clear();
  bool has_workspace = false;
  const auto& type = *v1::CreateSpec::descriptor();
  for (const auto& [key, value] : root->entries) {
    const auto own = std::ranges::find(kAgentKeys, key->text, &Key<AgentDefinition>::name);
    if (own != kAgentKeys.end()) {
      has_workspace |= own->name == "workspace";
      AGBOX_TRY_VOID(own->set(agent, *value));
    } else if (type.FindFieldByName(key->text) != nullptr) {
      sandbox.entries.emplace_back(key, value);
    } else {
      return unknown_key(*key, all_keys());
    }
  }
  AGBOX_TRY(spec, parse_config_map(sandbox));
  agent.spec = std::move(spec);
  if (!has_workspace && agent.mode == AgentMode::LongRunning) {
    agent.workspace = WorkspaceMode::None;
  }
  AGBOX_TRY_VOID(check_commands(agent, *root));
  return agent;
}

Result<AgentDefinition> find_agent_definition(const std::string& name) {
  if (is_agent_name(name)) {
    AGBOX_TRY(directory, users_directory());
    const fs::path path = directory / (name + kSuffix);
    std::error_code problem;
    if (fs::exists(path, problem) || problem) return read_definition(name, path);
    if (const BuiltinDefinition* builtin = find_builtin(name)) {
      return parse_agent_definition(name, builtin->yaml);
    }
    return fail(reason::kInvalidArgument, "there is no agent \"" + name + "\": no " +
                                              path.string() + ", and none of agbox; see " +
                                              "agbox agent --list");
  }
  return fail(reason::kInvalidArgument, "\"" + shown_path(name) +
                                            "\" is not the name of an agent: use letters, "
                                            "digits, - and _");
}

Result<std::vector<ListedAgent>> list_agent_definitions() {
  AGBOX_TRY(directory, users_directory());
  std::vector<ListedAgent> out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(directory, problem)) {
    const fs::path& path = entry.path();
    const std::string name = path.stem().string();
    if (path.extension() != kSuffix || !is_agent_name(name)) continue;
    out.push_back(listed(name, path.string(), read_definition(name, path)));
  }
  if (problem && problem != std::errc::no_such_file_or_directory) {
    return std::unexpected(errno_error("read " + directory.string(), problem.value()));
  }
  for (const BuiltinDefinition& builtin : builtin_definitions()) {
    if (std::ranges::find(out, builtin.name, &ListedAgent::name) != out.end()) continue;
    const std::string name(builtin.name);
    out.push_back(listed(name, kBuiltin, parse_agent_definition(name, builtin.yaml)));
  }
  std::ranges::sort(out, {}, &ListedAgent::name);
  return out;
}

std::string mode_text(AgentMode mode) {
  return mode == AgentMode::Interactive ? "interactive" : "long-running";
}

std::optional<AgentMode> parse_mode(std::string_view text) {
  if (text == "interactive") return AgentMode::Interactive;
  if (text == "long-running") return AgentMode::LongRunning;
  return std::nullopt;
}

fs::path expanded(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* const home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + path.substr(1);
}

}  // namespace agbox::cli
