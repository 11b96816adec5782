// SPDX-License-Identifier: Apache-2.0
// agbox ping: checks that the daemon is reachable; prints its version, features and round trip
// time.
#include <agbox/raw_client.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/message_json.h"
#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

struct PingFlags {
  bool json = false;
};

using std::chrono::steady_clock;

std::string milliseconds(steady_clock::duration time) {
  std::array<char, 32> text{};
  const double value = std::chrono::duration<double, std::milli>(time).count();
  std::snprintf(text.data(), text.size(), "%.3f ms", value);
  return text.data();
}

// nullopt if the daemon does not report it.
std::optional<std::string> describe_isolation(const v1::PingResponse& response) {
  if (!response.isolation_shortcoming().empty()) return response.isolation_shortcoming();
  if (std::ranges::find(response.features(), "isolation") == response.features().end()) return {};
  if (response.isolation_repairs() == 0) return "in place";
  const bool is_once = response.isolation_repairs() == 1;
  return "in place; restored " +
         (is_once ? "once: " : std::to_string(response.isolation_repairs()) + " times, last: ") +
         response.isolation_last_repair();
}

int ping(Console& console, const PingFlags& flags) {
  const auto client = sdk::RawClient::open();
  if (!client) return fail_call(console, "ping", client.error());
  // The first call also connects; the second measures the round trip alone.
  auto response = client->ping();
  if (!response) return fail_call(console, "ping", response.error());
  const auto sent = steady_clock::now();
  response = client->ping();
  const auto round_trip = steady_clock::now() - sent;
  if (!response) return fail_call(console, "ping", response.error());

  if (flags.json) {
    console.out(message_json(*response));
    return kSuccess;
  }
  std::string text = "daemon: " + response->daemon() + "\nversion: " + response->version() + "\n";
  if (!response->instance_id().empty()) text += "instance: " + response->instance_id() + "\n";
  if (!response->engine().empty()) text += "engine: " + response->engine() + "\n";
  if (const auto isolation = describe_isolation(*response))
    text += "isolation: " + *isolation + "\n";
  if (!response->limits_shortcoming().empty()) {
    text += "limits: " + response->limits_shortcoming() + "\n";
  }
  for (const std::string& feature : response->features()) text += "feature: " + feature + "\n";
  text += "socket: " + client->socket().string() + "\n";
  text += "round trip: " + milliseconds(round_trip) + "\n";
  console.out(printable(text));
  return kSuccess;
}

}  // namespace

void add_ping(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "ping", "Check that the daemon is reachable and show its version", ping);
  command.add_flag("--json", flags.json, "Print the response as JSON");
}

}  // namespace agbox::cli
