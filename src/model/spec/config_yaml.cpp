// SPDX-License-Identifier: Apache-2.0
#include "model/spec/config_yaml.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "base/check.h"
#include "base/edit_distance.h"
#include "base/utf8.h"
#include "model/duration.h"
#include "model/spec/maxima.h"
#include "model/spec/ports.h"
#include "model/spec/request_checks.h"
#include "model/spec/yaml.h"

namespace agbox {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::util::TimeUtil;

Result<> fill(Message& message, const YamlNode& map);

// --- names ---

bool is_companion(const Descriptor* type) {
  return type == v1::CompanionContainerSpec::descriptor();
}

std::string in_quotes(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

// The key of a companion's map is its name.
bool is_key(const FieldDescriptor& field) {
  return !(is_companion(field.containing_type()) && field.name() == "name");
}

std::string known_keys(const Descriptor& type) {
  std::string keys;
  for (int i = 0; i < type.field_count(); ++i) {
    if (!is_key(*type.field(i))) continue;
    keys += (keys.empty() ? "" : ", ") + type.field(i)->name();
  }
  return keys;
}

std::unexpected<Error> unknown_key(const YamlNode& key, const Descriptor& type) {
  std::optional<std::string> nearest;
  std::size_t least = 3;  // a larger distance is another word
  const std::string_view word = utf8_prefix(key.text, 64);
  for (int i = 0; i < type.field_count(); ++i) {
    const std::size_t distance = edit_distance(word, type.field(i)->name());
    if (!is_key(*type.field(i)) || distance >= least) continue;
    least = distance;
    nearest = type.field(i)->name();
  }
  return yaml_error(key, "unknown key " + in_quotes(word) +
                             (nearest ? "; did you mean " + in_quotes(*nearest) + "?"
                                      : "; known keys: " + known_keys(type)));
}

// --- scalars ---

Result<const std::string*> string_of(const YamlNode& value, std::string_view name) {
  if (value.kind == YamlNode::Kind::Scalar) return &value.text;
  return yaml_error(value, std::string(name) + " must be a string");
}

std::string in_lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// As YAML 1.1 has them, which clients and their files know.
Result<bool> boolean_of(const YamlNode& value, std::string_view name) {
  const std::string word = in_lower_case(value.text);
  const auto is_one_of = [&](std::initializer_list<std::string_view> words) {
    return value.is_plain && std::ranges::find(words, word) != words.end();
  };
  if (is_one_of({"true", "yes", "on", "y"})) return true;
  if (is_one_of({"false", "no", "off", "n"})) return false;
  return yaml_error(value, std::string(name) + " must be true or false");
}

std::optional<double> number_of(std::string text) {
  std::erase(text, '_');
  if (text.starts_with('+')) text.erase(0, 1);
  int base = 10;
  if (text.size() > 1 && text[0] == '0' && text[1] != '.') {
    const char letter = text[1];
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
    text.erase(0, letter == 'x' || letter == 'b' || letter == 'o' ? 2 : 1);
  }
  const char* end = text.data() + text.size();
  std::uint64_t integer = 0;
  if (const auto [rest, error] = std::from_chars(text.data(), end, integer, base);
      error == std::errc() && rest == end) {
    return static_cast<double>(integer);
  }
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (base != 10 || error != std::errc() || rest != end) return std::nullopt;
  return number;
}

Result<std::uint32_t> unsigned_of(const YamlNode& value, std::string_view name) {
  const auto number = value.is_plain ? number_of(value.text) : std::nullopt;
  if (number && *number >= 0 && *number <= std::numeric_limits<std::uint32_t>::max()) {
    return static_cast<std::uint32_t>(*number);  // of a fraction the whole part
  }
  const bool is_port = name.ends_with("_port");
  return yaml_error(value, std::string(name) + " must be a whole number from " +
                               (is_port ? "1 to 65535" : "0 to 4294967295") + ", without quotes");
}

Result<v1::PortProtocol> protocol_of(const YamlNode& value, std::string_view name) {
  AGBOX_TRY(text, string_of(value, name));
  std::string word = *text;
  std::erase_if(word, [](unsigned char c) { return std::isspace(c) != 0; });
  if (word.empty()) return v1::PORT_PROTOCOL_TCP;
  if (const auto protocol = parse_protocol(word)) return *protocol;
  return yaml_error(value, "unsupported port protocol " + in_quotes(utf8_prefix(*text, 64)) +
                               "; must be tcp, udp, or sctp");
}

// --- fields ---

Result<> set_duration(Message& message, const FieldDescriptor& field, const YamlNode& value) {
  AGBOX_TRY(text, string_of(value, field.name()));
  if (text->empty()) return {};
  const auto duration = parse_duration(*text);
  if (!duration) {
    return yaml_error(value, "invalid duration for " + field.name() + ": " +
                                 in_quotes(utf8_prefix(*text, 64)) +
                                 ": use for example 30m, 1h30m or 0");
  }
  message.GetReflection()
      ->MutableMessage(&message, &field)
      ->CopyFrom(TimeUtil::NanosecondsToDuration(duration->count()));
  return {};
}

Result<> set_strings(Message& message, const FieldDescriptor& field, const YamlNode& value) {
  if (value.kind != YamlNode::Kind::List) {
    return yaml_error(value, field.name() + " must be a list of strings");
  }
  if (value.items.empty() && field.name() == "command") {
    return yaml_error(value,
                      "command: empty array is not allowed; omit the field to use the default");
  }
  for (const YamlNodePtr& item : value.items) {
    if (item->is_null()) continue;
    AGBOX_TRY(text, string_of(*item, "an entry of " + field.name()));
    message.GetReflection()->AddString(&message, &field, *text);
  }
  return {};
}

Result<> set_map(Message& message, const FieldDescriptor& field, const YamlNode& value) {
  if (value.kind != YamlNode::Kind::Map) {
    return yaml_error(value, field.name() + " must be a map");
  }
  const Descriptor& entry_type = *field.message_type();
  for (const auto& [key, item] : value.entries) {
    AGBOX_TRY(text, string_of(*item, field.name() + "." + key->text));
    Message& entry = *message.GetReflection()->AddMessage(&message, &field);
    entry.GetReflection()->SetString(&entry, entry_type.map_key(), key->text);
    entry.GetReflection()->SetString(&entry, entry_type.map_value(),
                                     item->is_null() ? std::string() : *text);
  }
  return {};
}

// By name in YAML. Services start in the order of the document; of companions, which all start at
// once, clients know the order of their names.
Result<> set_companions(Message& message, const FieldDescriptor& field, const YamlNode& value) {
  if (value.kind != YamlNode::Kind::Map) {
    return yaml_error(value, field.name() + " must be a map by name");
  }
  auto entries = value.entries;
  if (field.number() == v1::CreateSpec::kCompanionContainersFieldNumber) {
    std::ranges::sort(entries, {}, [](const auto& entry) { return entry.first->text; });
  }
  for (const auto& [name, spec] : entries) {
    v1::CompanionContainerSpec companion;
    companion.set_name(name->text);
    if (!spec->is_null()) AGBOX_TRY_VOID(fill(companion, *spec));
    message.GetReflection()->AddMessage(&message, &field)->CopyFrom(companion);
  }
  return {};
}

Result<> set_messages(Message& message, const FieldDescriptor& field, const YamlNode& value) {
  if (value.kind != YamlNode::Kind::List) {
    return yaml_error(value, field.name() + " must be a list");
  }
  for (const YamlNodePtr& item : value.items) {
    AGBOX_TRY_VOID(fill(*message.GetReflection()->AddMessage(&message, &field), *item));
  }
  return {};
}

Result<> set_field(Message& message, const FieldDescriptor& field, const YamlNode& value) {
  if (value.is_null()) return {};  // as if the key were left out
  const auto& reflection = *message.GetReflection();
  if (field.is_map()) return set_map(message, field, value);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    if (is_companion(field.message_type())) return set_companions(message, field, value);
    if (field.is_repeated()) return set_messages(message, field, value);
    if (field.message_type() == google::protobuf::Duration::descriptor()) {
      return set_duration(message, field, value);
    }
    return fill(*reflection.MutableMessage(&message, &field), value);
  }
  if (field.is_repeated()) return set_strings(message, field, value);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      AGBOX_TRY(text, string_of(value, field.name()));
      reflection.SetString(&message, &field, *text);
      return {};
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      AGBOX_TRY(flag, boolean_of(value, field.name()));
      reflection.SetBool(&message, &field, flag);
      return {};
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      AGBOX_TRY(number, unsigned_of(value, field.name()));
      reflection.SetUInt32(&message, &field, number);
      return {};
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      AGBOX_TRY(protocol, protocol_of(value, field.name()));
      reflection.SetEnumValue(&message, &field, protocol);
      return {};
    }
    default:
      AGBOX_CHECK(false, "a field of a spec has a type that has no YAML form");
  }
  return {};
}

Result<> fill(Message& message, const YamlNode& map) {
  const Descriptor& type = *message.GetDescriptor();
  if (map.kind != YamlNode::Kind::Map) {
    return yaml_error(map, "expected a map with the keys " + known_keys(type));
  }
  for (const auto& [key, value] : map.entries) {
    const FieldDescriptor* field = type.FindFieldByName(key->text);
    if (field == nullptr || !is_key(*field)) return unknown_key(*key, type);
    AGBOX_TRY_VOID(set_field(message, *field, *value));
  }
  return {};
}

}  // namespace

Result<v1::CreateSpec> parse_config_yaml(std::string_view yaml) {
  AGBOX_TRY_VOID(at_most(yaml.size(), maxima::kConfigYamlBytes, "the size of config_yaml"));
  const auto root = parse_yaml(yaml);
  if (!root) return std::unexpected(root.error());
  if ((*root)->is_null()) return yaml_error(**root, "the document is empty");
  return parse_config_map(**root);
}

Result<v1::CreateSpec> parse_config_map(const YamlNode& map) {
  v1::CreateSpec spec;
  AGBOX_TRY_VOID(fill(spec, map));
  return spec;
}

v1::CreateSpec merge_create_specs(v1::CreateSpec file, const v1::CreateSpec& overrides) {
  if (overrides.command_size() > 0) file.clear_command();
  // Otherwise a zero, or fewer nanoseconds, would not replace what the file has.
  if (overrides.has_idle_ttl()) file.clear_idle_ttl();
  if (overrides.has_lease_ttl()) file.clear_lease_ttl();
  file.MergeFrom(overrides);
  std::set<std::string> seen;
  auto& tools = *file.mutable_builtin_tools();
  const auto repeated = std::remove_if(tools.begin(), tools.end(), [&](const std::string& tool) {
    return !seen.insert(tool).second;
  });
  tools.erase(repeated, tools.end());
  return file;
}

}  // namespace agbox
