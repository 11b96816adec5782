// SPDX-License-Identifier: Apache-2.0
// A repeatable flag with key=value arguments: --label, --env.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <map>
#include <string>

namespace agbox::cli {

class KeyValueFlag {
 public:
  // `name` with its dashes.
  KeyValueFlag(CLI::App& command, const std::string& name, const std::string& description);

  bool is_given() const { return option_->count() > 0; }
  // "=value" was given.
  bool has_empty_key() const;
  // The error is the message of the usage error. The last value of a key wins.
  std::expected<std::map<std::string, std::string>, std::string> values() const;

 private:
  CLI::Option* option_;
};

}  // namespace agbox::cli
