// SPDX-License-Identifier: Apache-2.0
// agbox version: prints the versions of agbox and agboxd. An unreachable daemon is not an error.
#include <agbox/raw_client.h>

#include <optional>

#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

struct VersionFlags {
  bool json = false;
};

std::optional<std::string> daemon_version() {
  const auto client = sdk::RawClient::open();
  if (!client) return std::nullopt;
  const auto response = client->ping();
  if (!response) return std::nullopt;
  return response->version();
}

int show_versions(Console& console, const VersionFlags& flags) {
  const auto daemon = daemon_version();
  if (flags.json) {
    console.out("{\n  \"agbox\": " + json_quote(AGBOX_VERSION) +
                ",\n  \"agboxd\": " + (daemon ? json_quote(*daemon) : "null") + "\n}\n");
  } else {
    console.out("agbox: " AGBOX_VERSION "\nagboxd: " + printable(daemon.value_or("unavailable")) +
                "\n");
  }
  return kSuccess;
}

}  // namespace

void add_version(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "version", "Show the versions of agbox and agboxd", show_versions);
  command.add_flag("--json", flags.json, "Print JSON");
}

}  // namespace agbox::cli
