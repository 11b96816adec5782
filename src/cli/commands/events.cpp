// SPDX-License-Identifier: Apache-2.0
// agbox events: the history of one sandbox, and what comes.
#include <agbox/event_follower.h>

#include <charconv>
#include <memory>
#include <optional>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/event_line.h"
#include "cli/interrupt.h"
#include "cli/message_json.h"

namespace agbox::cli {

namespace {

struct EventsFlags {
  std::string sandbox_id;
  std::string from = "0";
  bool follow = false;
  bool json = false;
};

// Not CLI11's own conversion, which takes -1 for a very large number and nothing for 0.
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
    return refuse_usage(console, "--from: \"" + flags.from + "\" is not the number of an event");
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  v1::GetSandboxRequest request;
  request.set_sandbox_id(flags.sandbox_id);
  const auto answer = client->get_sandbox(request);
  if (!answer) return fail_call(console, "get sandbox", answer.error());
  const std::uint64_t newest = answer->sandbox().last_event_sequence();
  // Behind its deletion nothing happens to a sandbox any more.
  const bool follows = flags.follow && answer->sandbox().state() != v1::SANDBOX_STATE_DELETED;

  const Interrupt interrupt;
  sdk::EventFollower events(*client, flags.sandbox_id, *from, {.stop = interrupt.token()});
  const bool is_beyond = *from > newest;  // for the daemon to refuse
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
  CLI::App& command = *parent.add_subcommand("events", "Show what happened to a sandbox");
  // Shared by the parser, which sets them, and the action, which reads them later.
  auto flags = std::make_shared<EventsFlags>();
  command.add_option("sandbox_id", flags->sandbox_id, "Which one")->required();
  command.add_flag("-f,--follow", flags->follow, "Go on with new events until it is deleted");
  command.add_option("--from", flags->from, "Only events behind the one with this number")
      ->type_name("NUMBER")
      ->take_last();
  command.add_flag("--json", flags->json, "Print one JSON object per line");
  line.on(command, [flags](Console& console) { return show_events(console, *flags); });
}

}  // namespace agbox::cli
