// SPDX-License-Identifier: Apache-2.0
#include "cli/key_value_flag.h"

#include <algorithm>

namespace agbox::cli {

// Reads the raw results of the option: CLI11's conversion to a list would treat "{}" as empty.
KeyValueFlag::KeyValueFlag(CLI::App& command, const std::string& name,
                           const std::string& description)
    : option_(command.add_option(name, [](const CLI::results_t&) { return true; }, description)) {
  option_->take_all()->type_name("KEY=VALUE");
}

bool KeyValueFlag::has_empty_key() const {
  return std::ranges::any_of(option_->results(),
                             [](const std::string& text) { return text.starts_with('='); });
}

std::expected<std::map<std::string, std::string>, std::string> KeyValueFlag::values() const {
  std::map<std::string, std::string> out;
  for (const std::string& argument : option_->results()) {
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos || equals == 0) {
      return std::unexpected(option_->get_name() + " must be in key=value form");
    }
    out[argument.substr(0, equals)] = argument.substr(equals + 1);
  }
  return out;
}

}  // namespace agbox::cli
