// SPDX-License-Identifier: Apache-2.0
// What an operator may set in config.toml, read once at start. The file is optional and strict: an
// unknown key, a wrong type or a value out of range is an error that says where and what instead.
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
  std::chrono::nanoseconds idle_ttl{0};             // 0: never stopped for being idle
  std::chrono::nanoseconds cleanup_ttl{0};          // 0: never deleted for their age
  std::chrono::nanoseconds event_retention_ttl{0};  // 0: history is kept for ever
  std::filesystem::path state_root;
  LogLevel log_level = LogLevel::Info;
  std::filesystem::path exec_output_root;
  std::string exec_output_template;
  std::uint64_t exec_output_max = 0;  // bytes; 0: no limit
  Ipv4Network address_pool;
  std::vector<Ipv4Address> dns;  // empty: the host's resolvers
};

// One key of config.toml. The parser, its errors and docs/configuration_reference.md are made from
// the table of these alone.
struct ConfigurationKey {
  enum class Kind { String, StringList };

  std::string_view table;
  std::string_view name;
  Kind kind = Kind::String;
  std::string_view written_as;  // what people write, for the reference and for errors
  std::string_view example;
  // Read like a value of the user's; empty where the default depends on the machine.
  std::string_view default_value = {};
  std::string_view computed_default = {};  // the default in words, where one value does not say it
  std::string_view meaning;
  // Stores the value; a String has exactly one. The error says what is wrong with it.
  Result<> (*assign)(std::span<const std::string> values, Configuration& into);

  std::string full_name() const { return std::string(table) + "." + std::string(name); }
};

std::span<const ConfigurationKey> configuration_keys();

// What holds without a file.
Configuration default_configuration(const FixedPaths& paths);

// Reads the text of a file; `paths` gives the defaults and the name that errors call the file by.
Result<Configuration> parse_configuration(std::string_view text, const FixedPaths& paths);

// Reads paths.config_file; a file that is not there means the defaults.
Result<Configuration> load_configuration(const FixedPaths& paths);

}  // namespace agbox
