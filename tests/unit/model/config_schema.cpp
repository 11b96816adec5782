// SPDX-License-Identifier: Apache-2.0
#include "unit/model/config_schema.h"

#include <google/protobuf/descriptor.h>

#include <boost/json.hpp>
#include <map>
#include <string_view>

#include "agbox/v1/spec.pb.h"
#include "base/check.h"
#include "model/spec/builtin_tools.h"
#include "model/spec/ports.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {
namespace {

namespace json = boost::json;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// What an editor shows for a key.
const std::map<std::string_view, std::string_view> kDescriptions = {
    {"image", "Container image, e.g. debian:12."},
    {"labels", "Labels, to find and delete sandboxes by."},
    {"envs", "Environment variables."},
    {"idle_ttl", "Stop the sandbox after this long without an exec, e.g. 30m; 0 = never."},
    {"lease_ttl", "Delete the sandbox once no client has held it for this long, e.g. 10s."},
    {"command", "Command of the container, with its arguments."},
    {"cpu_limit", "CPU limit, e.g. 1.5."},
    {"memory_limit", "Memory limit, e.g. 2g."},
    {"disk_limit", "Limit of the sandbox's own files, e.g. 10g; not every engine can."},
    {"gpus", "all = every NVIDIA GPU of the host."},
    {"bypass_entrypoint", "Ignore the image's ENTRYPOINT."},
    {"mounts", "Files and directories of the host, read-only unless writable."},
    {"copies", "Files and directories of the host that the sandbox gets its own copy of."},
    {"builtin_tools", "Tools of the host whose files and sockets the sandbox sees."},
    {"ports", "Ports of the sandbox, published on 127.0.0.1 of the host."},
    {"required_services", "Containers that must be healthy before the sandbox is ready, by name."},
    {"optional_services", "Containers next to the sandbox that may fail, by name."},
    {"companion_containers", "The same, with commands to run in the sandbox once one is healthy."},
};

// Any scalar is taken as its text.
json::object text_schema() {
  return {{"type", {"string", "number", "boolean", "null"}}};
}

json::object schema_of(const FieldDescriptor& field);

bool is_companion(const Descriptor* type) {
  return type == v1::CompanionContainerSpec::descriptor();
}

// Of a port, which is not taken as text.
json::object port_schema() {
  return {{"type", "integer"}, {"minimum", 1}, {"maximum", 65535}};
}

json::object protocol_schema() {
  json::array names;
  for (const auto protocol :
       {v1::PORT_PROTOCOL_TCP, v1::PORT_PROTOCOL_UDP, v1::PORT_PROTOCOL_SCTP}) {
    names.emplace_back(protocol_name(protocol));
  }
  return {{"enum", names}};
}

json::object map_schema(const Descriptor& type) {
  json::object properties;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    // The name of a companion is its key.
    if (is_companion(&type) && field.name() == "name") continue;
    properties[field.name()] = schema_of(field);
  }
  json::object schema = {
      {"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
  if (&type == v1::PortMapping::descriptor()) schema["required"] = {"host_port", "container_port"};
  return schema;
}

json::object tools_schema() {
  json::array names;
  for (const BuiltinTool& tool : builtin_tools()) names.emplace_back(tool.name);
  return {{"type", "array"}, {"items", json::object{{"enum", names}}}};
}

json::object schema_of(const FieldDescriptor& field) {
  if (field.name() == "builtin_tools") return tools_schema();
  if (field.message_type() == v1::HealthcheckConfig::descriptor()) {
    return map_schema(*field.message_type());
  }
  if (is_companion(field.message_type())) {
    return {{"type", "object"}, {"additionalProperties", map_schema(*field.message_type())}};
  }
  if (field.is_repeated() && !field.is_map() &&
      field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return {{"type", "array"}, {"items", map_schema(*field.message_type())}};
  }
  if (field.is_map()) return {{"type", "object"}, {"additionalProperties", text_schema()}};
  if (field.is_repeated()) return {{"type", "array"}, {"items", text_schema()}};
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_BOOL) return {{"type", "boolean"}};
  if (field.containing_type() == v1::PortMapping::descriptor()) {
    return field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM ? protocol_schema() : port_schema();
  }
  return text_schema();
}

void print(std::string& out, const json::value& value, const std::string& indent) {
  const std::string inner = indent + "  ";
  if (!value.is_object() || value.as_object().empty()) {
    out += json::serialize(value);
    return;
  }
  out += "{";
  std::string_view separator = "\n";
  for (const auto& [key, item] : value.as_object()) {
    out += std::string(separator) + inner + json::serialize(json::string(key)) + ": ";
    print(out, item, inner);
    separator = ",\n";
  }
  out += "\n" + indent + "}";
}

}  // namespace

std::string config_schema() {
  const Descriptor& spec = *v1::CreateSpec::descriptor();
  json::object properties;
  for (int i = 0; i < spec.field_count(); ++i) {
    const FieldDescriptor& field = *spec.field(i);
    const auto description = kDescriptions.find(field.name());
    AGBOX_CHECK(description != kDescriptions.end(), "every key has a description");
    json::object property = {{"description", description->second}};
    for (const auto& [key, value] : schema_of(field)) property.insert_or_assign(key, value);
    properties[field.name()] = std::move(property);
  }
  std::string out;
  print(out,
        json::object{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                     {"title", "agents-sandbox: a sandbox"},
                     {"type", "object"},
                     {"additionalProperties", false},
                     {"properties", properties}},
        "");
  return out + "\n";
}

}  // namespace agbox
