// SPDX-License-Identifier: Apache-2.0
// Reading requests and writing answers, for the parts of fake::Engine.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <map>
#include <string>
#include <string_view>

#include "model/spec/image_reference.h"
#include "support/fake_docker/fake_engine.h"

namespace agbox::fake {

// Since 1970, as the engine writes it.
inline std::string time_text(std::int64_t nanoseconds) {
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text.data() + length, text.size() - length, ".%09ldZ",
                static_cast<long>(nanoseconds % 1'000'000'000));
  return text.data();
}

inline std::int64_t now_nanoseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

inline std::string now_text() {
  return time_text(now_nanoseconds());
}

inline std::string canonical(std::string_view reference) {
  const auto parsed = parse_image_reference(reference);
  return parsed ? parsed->canonical() : std::string(reference);
}

// What people call it: without the registry and directory that they do not write.
inline std::string familiar(std::string_view reference) {
  const auto parsed = parse_image_reference(reference);
  if (!parsed) return std::string(reference);
  std::string name = parsed->canonical();
  for (const std::string_view prefix : {"docker.io/library/", "docker.io/"}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

inline json::object parse_body(const std::string& body) {
  boost::system::error_code problem;
  const json::value value = json::parse(body, problem);
  return !problem && value.is_object() ? value.as_object() : json::object();
}

inline std::string text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : std::string();
}

inline bool flag_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_bool() && value->as_bool();
}

inline json::object object_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_object() ? value->as_object() : json::object();
}

inline json::array array_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_array() ? value->as_array() : json::array();
}

inline std::map<std::string, std::string> labels_of(const json::object& spec) {
  std::map<std::string, std::string> labels;
  for (const auto& field : object_at(spec, "Labels")) {
    labels[field.key()] = std::string(field.value().as_string());
  }
  return labels;
}

inline json::object show(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [key, value] : texts) object[key] = value;
  return object;
}

// 10.1.2.16/28 and 3 -> 10.1.2.19
inline std::string address_in(std::string_view subnet, unsigned host) {
  std::array<unsigned, 4> parts{};
  const std::string text(subnet);
  if (std::sscanf(text.c_str(), "%u.%u.%u.%u", &parts[0], &parts[1], &parts[2], &parts[3]) != 4) {
    return {};
  }
  parts[3] += host;
  return std::to_string(parts[0]) + "." + std::to_string(parts[1]) + "." +
         std::to_string(parts[2]) + "." + std::to_string(parts[3]);
}

inline bool has_flag(const Request& request, const std::string& key) {
  const auto found = request.query.find(key);
  return found != request.query.end() && (found->second == "1" || found->second == "true");
}

inline std::string query(const Request& request, const std::string& key) {
  const auto found = request.query.find(key);
  return found == request.query.end() ? std::string() : found->second;
}

inline Reply ok(const json::value& body, int status = 200) {
  return {.status = status, .body = json::serialize(body)};
}

}  // namespace agbox::fake
