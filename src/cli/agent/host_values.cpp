// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/host_values.h"

#include <fcntl.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cerrno>
#include <expected>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "model/spec/builtin_tools.h"

namespace agbox::cli {

namespace {

using JsonValue = google::protobuf::Value;

// An agent may write to it, if it is in a mount, and make it a link to anything.
constexpr std::size_t kMaxJson = std::size_t{16} << 20;

std::optional<std::string> text_of(const JsonValue& value) {
  switch (value.kind_case()) {
    case JsonValue::kStringValue:
      if (value.string_value().empty()) return std::nullopt;
      return value.string_value();
    case JsonValue::kNumberValue:
      return std::to_string(value.number_value());
    case JsonValue::kBoolValue:
      return value.bool_value() ? "true" : "false";
    case JsonValue::kStructValue:
      if (value.struct_value().fields().empty()) return std::nullopt;
      return "";
    case JsonValue::kListValue:
      if (value.list_value().values().empty()) return std::nullopt;
      return "";
    case JsonValue::kNullValue:
    case JsonValue::KIND_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> json_value(const std::string& file, const std::string& names) {
  const UniqueFd opened(::open(expanded(file).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto text = opened ? read_all(opened.get(), kMaxJson) : std::unexpected(errno);
  JsonValue value;
  if (!text || !google::protobuf::util::JsonStringToMessage(*text, &value).ok()) {
    return std::nullopt;
  }
  const JsonValue* found = &value;
  for (std::string_view rest = names; !rest.empty();) {
    const std::size_t dot = rest.find('.');
    const auto& fields = found->struct_value().fields();
    const auto field = fields.find(std::string(rest.substr(0, dot)));
    if (field == fields.end()) return std::nullopt;
    found = &field->second;
    rest.remove_prefix(dot == std::string_view::npos ? rest.size() : dot + 1);
  }
  return text_of(*found);
}

std::string unmet_requirement(const AgentDefinition& agent) {
  for (const AgentRequirement& requirement : agent.requirements) {
    const std::filesystem::path path = expanded(requirement.file);
    std::error_code problem;
    const bool is_met = requirement.json.empty()
                            ? std::filesystem::exists(path, problem)
                            : json_value(requirement.file, requirement.json).has_value();
    if (is_met) continue;
    std::string text =
        agent.name + ": " + path.string() +
        (std::filesystem::exists(path, problem) ? " has no \"" + requirement.json + "\""
                                                : " does not exist");
    if (!requirement.otherwise.empty()) text += "\n\n" + requirement.otherwise;
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }
  return "";
}

void skip_missing_tools(Console& console, const std::string& agent, v1::CreateSpec& spec) {
  const auto is_missing = [&](const std::string& name) {
    const auto tools = builtin_tools();
    const auto tool = std::ranges::find(tools, name, &BuiltinTool::name);
    if (tool == tools.end()) return false;  // the daemon says so
    for (const ToolResource& resource : tool->resources) {
      if (!resource.is_required) continue;
      const std::filesystem::path path = expanded("~/" + std::string(resource.source));
      std::error_code problem;
      if (std::filesystem::exists(path, problem)) continue;
      console.error(agent + ": skipping builtin tool \"" + name + "\": required host path \"" +
                    path.string() + "\" not found");
      return true;
    }
    return false;
  };
  auto& tools = *spec.mutable_builtin_tools();
  tools.erase(std::remove_if(tools.begin(), tools.end(), is_missing), tools.end());
}

}  // namespace agbox::cli
