// SPDX-License-Identifier: Apache-2.0
// agbox events: prints the events of one sandbox, and follows new ones.
#include <agbox/event_follower.h>

#include <charconv>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/event_line.h"
#include "cli/format/message_json.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct EventsFlags {
  std::string sandbox_id;
  std::string from = "0";
  bool follow = false;
  bool json = false;
};

// CLI11's own conversion would accept -1 as a very large number and an empty string as 0.
std::optional<std::uint64_t> parse_sequence(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || rest != end) return std::nullopt;
  return value;
}

int show_events(Console& console, const EventsFlags& flags) {
  const auto from = parse_sequence(flags.from);
  if (!from) {
    return refuse_usage(console, "--from: \"" + flags.from + "\" is not an event sequence number");
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::GetSandboxRequest request;
  request.set_sandbox_id(flags.sandbox_id);
  const auto response = client->get_sandbox(request);
  if (!response) return fail_call(console, "get sandbox", response.error());
  const std::uint64_t newest = response->sandbox().last_event_sequence();
  // A deleted sandbox has no further events.
  const bool follows = flags.follow && response->sandbox().state() != v1::SANDBOX_STATE_DELETED;

  const Interrupt interrupt;
  sdk::EventFollower events(*client, flags.sandbox_id, *from, {.stop = interrupt.token()});
  const bool is_beyond = *from > newest;  // the daemon rejects it
  for (std::uint64_t shown = *from; follows || is_beyond || shown < newest;) {
    const auto event = events.next();
    if (!event && event.error().kind == sdk::ErrorKind::Cancelled) return interrupt.exit_code();
    if (!event) return fail_call(console, "subscribe sandbox events", event.error());
    console.out(flags.json ? message_json_line(*event) : event_line(*event));
    if (!console.flush()) return kRuntimeError;
    if (event->event_type() == v1::SANDBOX_DELETED) break;
    shown = event->sequence();
  }
  return kSuccess;
}

}  // namespace

void add_events(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "events", "Show the events of a sandbox", show_events);
  command.add_option("sandbox_id", flags.sandbox_id, "Sandbox ID")->required();
  command.add_flag("-f,--follow", flags.follow, "Follow new events until the sandbox is deleted");
  command.add_option("--from", flags.from, "Show only events after this sequence number")
      ->type_name("NUMBER")
      ->take_last();
  command.add_flag("--json", flags.json, "Print one JSON object per line");
}

}  // namespace agbox::cli
