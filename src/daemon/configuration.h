// SPDX-License-Identifier: Apache-2.0
// The settings in config.toml, read once at start. The file is optional and strict: an unknown key,
// a wrong type or a value out of range is an error with its location and a remedy.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "model/network/ipv4.h"
#include "paths/fixed_paths.h"

namespace agbox {

struct Configuration {
  std::chrono::nanoseconds idle_ttl{0};             // 0: never stopped when idle
  std::chrono::nanoseconds cleanup_ttl{0};          // 0: never deleted by age
  std::chrono::nanoseconds event_retention_ttl{0};  // 0: history is kept forever
  std::filesystem::path state_root;
  LogLevel log_level = LogLevel::Info;
  std::filesystem::path exec_output_root;
  std::string exec_output_template;
  std::uint64_t exec_output_max = 0;  // bytes; 0: no limit
  Ipv4Network address_pool;
  std::vector<Ipv4Address> dns;  // empty: the host's resolvers
  bool pauses_unisolated = true;
};

// One key of config.toml. The parser, its errors and docs/configuration_reference.md are all
// generated from the table of keys.
struct ConfigurationKey {
  enum class Kind { String, StringList };

  std::string_view table;
  std::string_view name;
  Kind kind = Kind::String;
  std::string_view written_as;  // the notation, for the reference and errors
  std::string_view example;
  // Parsed like a user's value; empty if the default depends on the machine.
  std::string_view default_value = {};
  std::string_view computed_default = {};  // describes a default that is not a single value
  std::string_view meaning;
  // Stores the value; a String has exactly one. The error describes the problem.
  Result<> (*assign)(std::span<const std::string> values, Configuration& into);

  std::string full_name() const { return std::string(table) + "." + std::string(name); }
};

std::span<const ConfigurationKey> configuration_keys();

// The configuration without a file.
Configuration default_configuration(const FixedPaths& paths);

// Parses the content of a file; `paths` provides the defaults and the file name for errors.
Result<Configuration> parse_configuration(std::string_view text, const FixedPaths& paths);

// Reads paths.config_file; a missing file means the defaults.
Result<Configuration> load_configuration(const FixedPaths& paths);

}  // namespace agbox
