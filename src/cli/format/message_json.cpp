// SPDX-License-Identifier: Apache-2.0
#include "cli/format/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <map>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"

namespace agbox::cli {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::util::TimeUtil;

// Many readers parse JSON numbers as doubles, so 64-bit integers are strings.
template <class Integer>
std::string quoted(Integer value) {
  return '"' + std::to_string(value) + '"';
}

// One value: of a list if index >= 0, else of a singular field.
class Value {
 public:
  Value(const Message& message, const FieldDescriptor& field, int index)
      : message_(message), field_(field), index_(index), reflection_(*message.GetReflection()) {}

  std::string json(int depth) const;

 private:
  template <class Alone, class Listed>
  auto get(Alone alone, Listed listed) const {
    return index_ < 0 ? (reflection_.*alone)(message_, &field_)
                      : (reflection_.*listed)(message_, &field_, index_);
  }
  const Message& nested() const {
    return index_ < 0 ? reflection_.GetMessage(message_, &field_)
                      : reflection_.GetRepeatedMessage(message_, &field_, index_);
  }
  std::string enum_name() const {
    const int value = get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue);
    const auto* known = field_.enum_type()->FindValueByNumber(value);
    return known == nullptr ? std::to_string(value) : json_quote(known->name());
  }

  const Message& message_;
  const FieldDescriptor& field_;
  int index_;
  const Reflection& reflection_;
};

std::string object(const Message& message, int depth);

std::string Value::json(int depth) const {
  switch (field_.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return get(&Reflection::GetBool, &Reflection::GetRepeatedBool) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return quoted(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64));
    case FieldDescriptor::CPPTYPE_UINT64:
      return quoted(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64));
    case FieldDescriptor::CPPTYPE_ENUM:
      return enum_name();
    case FieldDescriptor::CPPTYPE_STRING:
      AGBOX_CHECK(field_.type() != FieldDescriptor::TYPE_BYTES,
                  "nothing that is printed has bytes");
      return json_quote(get(&Reflection::GetString, &Reflection::GetRepeatedString));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return object(nested(), depth);
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      break;
  }
  die("nothing that is printed has a fraction");
}

std::string new_line(int depth) {
  return "\n" + std::string(static_cast<std::size_t>(depth) * 2, ' ');
}

std::string enclosed(char open, const std::vector<std::string>& items, char close, int depth) {
  if (items.empty()) return {open, close};
  std::string out(1, open);
  for (const std::string& item : items) {
    if (&item != &items.front()) out += ',';
    out += new_line(depth + 1) + item;
  }
  return out + new_line(depth) + close;
}

std::string list(const Message& message, const FieldDescriptor& field, int depth) {
  std::vector<std::string> items;
  const int size = message.GetReflection()->FieldSize(message, &field);
  for (int i = 0; i < size; ++i) items.push_back(Value(message, field, i).json(depth + 1));
  return enclosed('[', items, ']', depth);
}

// Sorted by key, so that the output is deterministic.
std::string map(const Message& message, const FieldDescriptor& field, int depth) {
  const Reflection& reflection = *message.GetReflection();
  std::map<std::string, std::string> sorted;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
    std::string key = Value(entry, *field.message_type()->map_key(), -1).json(depth + 1);
    if (!key.starts_with('"')) key = '"' + key + '"';
    sorted[key] = Value(entry, *field.message_type()->map_value(), -1).json(depth + 1);
  }
  std::vector<std::string> items;
  for (const auto& [key, value] : sorted) items.push_back(key + ": " + value);
  return enclosed('{', items, '}', depth);
}

bool is_unset(const Message& message, const FieldDescriptor& field) {
  return field.has_presence() && !message.GetReflection()->HasField(message, &field);
}

std::string field_json(const Message& message, const FieldDescriptor& field, int depth) {
  if (field.is_map()) return map(message, field, depth);
  if (field.is_repeated()) return list(message, field, depth);
  return is_unset(message, field) ? "null" : Value(message, field, -1).json(depth);
}

// Newlines in JSON strings are escaped, so every raw one is formatting.
std::string on_one_line(const std::string& json) {
  std::string out;
  bool is_indentation = false;
  for (const char c : json) {
    if (c == '\n') {
      if (out.ends_with(',')) out += ' ';
      is_indentation = true;
    } else if (c != ' ' || !is_indentation) {
      out += c;
      is_indentation = false;
    }
  }
  return out;
}

std::string object(const Message& message, int depth) {
  if (const auto* time = dynamic_cast<const google::protobuf::Timestamp*>(&message)) {
    return json_quote(TimeUtil::ToString(*time));
  }
  if (const auto* duration = dynamic_cast<const google::protobuf::Duration*>(&message)) {
    return json_quote(TimeUtil::ToString(*duration));
  }
  std::vector<std::string> items;
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    // Unset oneof members and optional scalars are omitted; an unset message is null.
    if (is_unset(message, field) && field.containing_oneof() != nullptr) continue;
    items.push_back(json_quote(field.name()) + ": " + field_json(message, field, depth + 1));
  }
  return enclosed('{', items, '}', depth);
}

}  // namespace

std::string message_json(const Message& message) {
  return object(message, 0) + "\n";
}

std::string message_json_line(const Message& message) {
  return on_one_line(object(message, 0)) + "\n";
}

std::string field_text(const Message& message, const FieldDescriptor& field,
                       const std::optional<std::string>& key) {
  const Reflection& reflection = *message.GetReflection();
  if (key) {
    for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
      const Message& entry = reflection.GetRepeatedMessage(message, &field, i);
      const auto text = [&entry](const FieldDescriptor* part) { return field_text(entry, *part); };
      if (text(field.message_type()->map_key()) == *key) {
        return text(field.message_type()->map_value());
      }
    }
    return "";
  }
  if (field.is_repeated()) return on_one_line(field_json(message, field, 0));
  if (is_unset(message, field)) return "";
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    return reflection.GetString(message, &field);
  }
  std::string text = on_one_line(field_json(message, field, 0));
  // Numbers of 64 bits, enumerators, times and durations: nothing in them is escaped.
  const bool is_quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace agbox::cli
