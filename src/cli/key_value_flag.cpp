// SPDX-License-Identifier: Apache-2.0
#include "cli/key_value_flag.h"

namespace agbox::cli {

// The words are read from the option itself: CLI11's conversion to a list would take "{}" for an
// empty one.
KeyValueFlag::KeyValueFlag(CLI::App& command, const std::string& name,
                           const std::string& description)
    : option_(command.add_option(name, [](const CLI::results_t&) { return true; }, description)) {
  option_->take_all()->type_name("KEY=VALUE");
}

std::expected<std::map<std::string, std::string>, std::string> KeyValueFlag::values() const {
  std::map<std::string, std::string> out;
  for (const std::string& word : option_->results()) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return std::unexpected(option_->get_name() + " must be in key=value form");
    }
    out[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return out;
}

}  // namespace agbox::cli
