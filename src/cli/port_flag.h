// SPDX-License-Identifier: Apache-2.0
// The repeatable flag that publishes ports of a sandbox: -p as in docker run.
#pragma once

#include <CLI/CLI.hpp>
#include <expected>
#include <string>
#include <vector>

#include "agbox/v1/spec.pb.h"

namespace agbox::cli {

class PortFlag {
 public:
  explicit PortFlag(CLI::App& command);

  // The error is the message of the usage error.
  std::expected<std::vector<v1::PortMapping>, std::string> values() const;

 private:
  CLI::Option* ports_;
};

// [127.0.0.1:]HOST:CONTAINER[/PROTOCOL]
std::expected<v1::PortMapping, std::string> parse_port_flag(const std::string& text);

}  // namespace agbox::cli
