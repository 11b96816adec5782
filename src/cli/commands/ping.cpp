// SPDX-License-Identifier: Apache-2.0
// agbox ping: whether the daemon answers, who it is, and how fast.
#include <agbox/raw_client.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/message_json.h"
#include "cli/printable.h"

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

// Nothing where the daemon is one that says nothing of it.
std::optional<std::string> describe_isolation(const v1::PingResponse& answer) {
  if (!answer.isolation_shortcoming().empty()) return answer.isolation_shortcoming();
  if (std::ranges::find(answer.features(), "isolation") == answer.features().end()) return {};
  if (answer.isolation_repairs() == 0) return "in place";
  const bool is_once = answer.isolation_repairs() == 1;
  return "in place; what others changed was put back " +
         (is_once ? "once: "
                  : std::to_string(answer.isolation_repairs()) + " times, the last time: ") +
         answer.isolation_last_repair();
}

int fail_ping(Console& console, const sdk::Error& error) {
  console.error("ping: " + error.message);
  return kRuntimeError;
}

int ping(Console& console, const PingFlags& flags) {
  const auto client = sdk::RawClient::open();
  if (!client) return fail_ping(console, client.error());
  // The first call also makes the connection; the second is the round trip alone.
  auto answer = client->ping();
  if (!answer) return fail_ping(console, answer.error());
  const auto sent = steady_clock::now();
  answer = client->ping();
  const auto round_trip = steady_clock::now() - sent;
  if (!answer) return fail_ping(console, answer.error());

  if (flags.json) {
    console.out(message_json(*answer));
    return kSuccess;
  }
  std::string text = "daemon: " + answer->daemon() + "\nversion: " + answer->version() + "\n";
  if (!answer->instance_id().empty()) text += "instance: " + answer->instance_id() + "\n";
  if (!answer->engine().empty()) text += "engine: " + answer->engine() + "\n";
  if (const auto isolation = describe_isolation(*answer)) text += "isolation: " + *isolation + "\n";
  for (const std::string& feature : answer->features()) text += "feature: " + feature + "\n";
  text += "socket: " + client->socket().string() + "\n";
  text += "round trip: " + milliseconds(round_trip) + "\n";
  console.out(printable(text));
  return kSuccess;
}

}  // namespace

void add_ping(CommandLine& line, CLI::App& parent) {
  CLI::App& command =
      *parent.add_subcommand("ping", "Ask the daemon whether it is there, and how fast it answers");
  // Shared by the parser, which sets them, and the action, which reads them later.
  auto flags = std::make_shared<PingFlags>();
  command.add_flag("--json", flags->json, "Print the daemon's answer as JSON");
  line.on(command, [flags](Console& console) { return ping(console, *flags); });
}

}  // namespace agbox::cli
