// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_client.h"

#include <utility>

#include "cli/command_line.h"

namespace agbox::cli {

std::optional<sdk::RawClient> open_client(Console& console) {
  auto client = sdk::RawClient::open();
  if (client) return std::move(*client);
  const bool has_path = client.error().kind != sdk::ErrorKind::NoSocketPath;
  fail_call(console, has_path ? "connect daemon" : "resolve daemon socket", client.error());
  return std::nullopt;
}

int fail_call(Console& console, std::string_view attempt, const sdk::Error& error) {
  console.error(std::string(attempt) + ": " + error.message);
  return kRuntimeError;
}

int refuse_usage(Console& console, const std::string& message) {
  console.error(message);
  return kUsageError;
}

}  // namespace agbox::cli
