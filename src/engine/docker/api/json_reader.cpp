// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/json_reader.h"

#include "base/rfc3339.h"

namespace agbox {

namespace json = boost::json;

EngineResult<json::value> parse_json(std::string_view text) {
  boost::system::error_code problem;
  json::value document = json::parse(json::string_view(text.data(), text.size()), problem);
  if (problem) {
    return engine_fail(EngineErrorKind::Garbled,
                       "the engine's answer is not JSON: " + problem.message());
  }
  return document;
}

JsonReader JsonReader::operator[](std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  if (value_ == nullptr) return {nullptr, *problem_, std::move(path)};
  const json::object* object = value_->if_object();
  if (object == nullptr) {
    complain("an object");
    return {nullptr, *problem_, std::move(path)};
  }
  const json::value* member = object->if_contains(json::string_view(key.data(), key.size()));
  if (member != nullptr && member->is_null()) member = nullptr;
  return {member, *problem_, std::move(path)};
}

std::vector<JsonReader> JsonReader::items() const {
  std::vector<JsonReader> all;
  if (value_ == nullptr) return all;
  const json::array* array = value_->if_array();
  if (array == nullptr) {
    complain("an array");
    return all;
  }
  all.reserve(array->size());
  for (const json::value& item : *array) {
    all.push_back({&item, *problem_, path_ + "[" + std::to_string(all.size()) + "]"});
  }
  return all;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::fields() const {
  std::vector<std::pair<std::string, JsonReader>> all;
  if (value_ == nullptr) return all;
  const json::object* object = value_->if_object();
  if (object == nullptr) {
    complain("an object");
    return all;
  }
  for (const auto& member : *object) {
    std::string key(member.key());
    const json::value* value = member.value().is_null() ? nullptr : &member.value();
    JsonReader reader(value, *problem_, path_.empty() ? key : path_ + "." + key);
    all.emplace_back(std::move(key), std::move(reader));
  }
  return all;
}

std::string JsonReader::text() const {
  if (value_ == nullptr) return {};
  if (const json::string* text = value_->if_string()) return {text->data(), text->size()};
  complain("a string");
  return {};
}

bool JsonReader::flag() const {
  if (value_ == nullptr) return false;
  if (const bool* flag = value_->if_bool()) return *flag;
  complain("a boolean");
  return false;
}

std::int64_t JsonReader::number() const {
  if (value_ == nullptr) return 0;
  boost::system::error_code problem;
  const auto number = value_->is_number() ? value_->to_number<std::int64_t>(problem) : 0;
  if (value_->is_number() && !problem) return number;
  complain("a whole number");
  return 0;
}

std::vector<std::string> JsonReader::texts() const {
  std::vector<std::string> all;
  for (const JsonReader& item : items()) all.push_back(item.text());
  return all;
}

std::map<std::string, std::string> JsonReader::text_map() const {
  std::map<std::string, std::string> all;
  for (const auto& [key, value] : fields()) all[key] = value.text();
  return all;
}

std::optional<WallTime> JsonReader::time() const {
  const std::string written = text();
  if (written.empty() || written.starts_with("0001-")) return std::nullopt;
  std::optional<WallTime> time = parse_rfc3339(written);
  if (!time) complain("a time");
  return time;
}

std::string JsonReader::required_text() const {
  std::string found = text();
  if (found.empty()) complain("there");
  return found;
}

void JsonReader::complain(std::string_view expected) const {
  if (!problem_->empty()) return;
  const std::string name = path_.empty() ? "the whole" : path_;
  *problem_ = "the engine's answer cannot be read: " + name + " is not " + std::string(expected);
}

}  // namespace agbox
