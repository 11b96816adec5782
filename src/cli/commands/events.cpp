// SPDX-License-Identifier: Apache-2.0
// agbox events: prints the events of one sandbox or of all, and follows new ones.
#include <agbox/all_events_follower.h>
#include <agbox/event_follower.h>

#include <charconv>
#include <expected>
#include <optional>
#include <ranges>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/event_line.h"
#include "cli/format/message_json.h"
#include "cli/id_lookup.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"

namespace agbox::cli {

namespace {

constexpr const char* kNow = "now";

struct EventsFlags {
  explicit EventsFlags(CLI::App& command)
      : sandbox_id_option(
            command.add_option("sandbox_id", sandbox_id, "Sandbox ID, or its beginning")),
        labels(command, "-l,--label", "With --all: only of sandboxes with this label (repeatable)"),
        types(command.add_option(
            "--type", [](const CLI::results_t&) { return true; },
            "With --all: only these types, e.g. SANDBOX_READY,SANDBOX_FAILED (repeatable)")) {
    types->take_all()->type_name("TYPES");
  }

  std::string sandbox_id;
  CLI::Option* sandbox_id_option;
  std::string from = "0";
  CLI::Option* from_option = nullptr;
  bool all = false;
  KeyValueFlag labels;
  CLI::Option* types;  // raw results, like KeyValueFlag
  std::string since_cursor;
  CLI::Option* since_cursor_option = nullptr;
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

int show_one(Console& console, const EventsFlags& flags) {
  const auto from = parse_sequence(flags.from);
  if (!from) {
    return refuse_usage(console, "--from: \"" + flags.from + "\" is not an event sequence number");
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const auto sandbox = find_sandbox(*client, flags.sandbox_id);
  if (!sandbox) return fail_call(console, "get sandbox", sandbox.error());
  const std::uint64_t newest = sandbox->last_event_sequence();
  // A deleted sandbox has no further events.
  const bool follows = flags.follow && sandbox->state() != v1::SANDBOX_STATE_DELETED;

  const Interrupt interrupt;
  sdk::EventFollower events(*client, sandbox->sandbox_id(), *from, {.stop = interrupt.token()});
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

std::string all_types() {
  std::string names;
  for (int type = v1::EVENT_TYPE_UNSPECIFIED + 1; type < v1::EventType_ARRAYSIZE; ++type) {
    if (!v1::EventType_IsValid(type)) continue;
    names += (names.empty() ? "" : ", ") + v1::EventType_Name(static_cast<v1::EventType>(type));
  }
  return names;
}

std::vector<std::string> type_names(const CLI::Option& types) {
  std::vector<std::string> names;
  for (const std::string& list : types.results()) {
    for (const auto name : list | std::views::split(',')) {
      names.emplace_back(name.begin(), name.end());
    }
  }
  return names;
}

// The error is the message of the usage error.
std::expected<v1::SubscribeEventsRequest, std::string> request_of(const EventsFlags& flags) {
  v1::SubscribeEventsRequest request;
  const auto labels = flags.labels.values();
  if (!labels) return std::unexpected(labels.error());
  request.mutable_label_selector()->insert(labels->begin(), labels->end());
  for (const std::string& name : type_names(*flags.types)) {
    v1::EventType type = v1::EVENT_TYPE_UNSPECIFIED;
    if (!v1::EventType_Parse(name, &type) || type == v1::EVENT_TYPE_UNSPECIFIED) {
      return std::unexpected("--type: \"" + name + "\" is not an event type; use " + all_types());
    }
    request.add_event_types(type);
  }
  if (flags.since_cursor == kNow) {
    request.set_start(v1::EVENTS_START_NOW);
  } else if (flags.since_cursor_option->count() > 0) {
    if (flags.since_cursor.empty()) return std::unexpected("--since-cursor must not be empty");
    request.set_cursor(flags.since_cursor);
  } else {
    request.set_start(v1::EVENTS_START_OLDEST);
  }
  return request;
}

int show_all(Console& console, const EventsFlags& flags) {
  const auto request = request_of(flags);
  if (!request) return refuse_usage(console, request.error());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const Interrupt interrupt;
  sdk::AllEventsFollower events(*client, *request, {.stop = interrupt.token()});
  while (true) {
    const auto message = events.next();
    if (!message && message.error().kind == sdk::ErrorKind::Cancelled) return interrupt.exit_code();
    if (!message) return fail_call(console, "subscribe events", message.error());
    if (message->events_missing() && !flags.json) {
      console.error("warning: events are missing here: the daemon has purged their history");
    }
    if (flags.json) {
      console.out(message_json_line(*message));
    } else if (message->has_event()) {
      console.out(event_line_with_sandbox(message->event()));
    }
    if (!console.flush()) return kRuntimeError;
    if (message->caught_up() && !flags.follow) return kSuccess;
  }
}

int show_events(Console& console, const EventsFlags& flags) {
  const bool has_id = flags.sandbox_id_option->count() > 0;
  const bool is_about_all =
      flags.labels.is_given() || flags.types->count() > 0 || flags.since_cursor_option->count() > 0;
  if (flags.all && has_id) {
    return refuse_usage(console, "events <sandbox_id> and --all are mutually exclusive");
  }
  if (flags.all && flags.from_option->count() > 0) {
    return refuse_usage(console, "--from counts the events of one sandbox; use --since-cursor");
  }
  if (!flags.all && is_about_all) {
    return refuse_usage(console, "--label, --type and --since-cursor require --all");
  }
  if (!flags.all && !has_id) {
    return refuse_usage(console, "events requires <sandbox_id> or --all");
  }
  return flags.all ? show_all(console, flags) : show_one(console, flags);
}

}  // namespace

void add_events(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "events", "Show the events of one sandbox or of all", show_events);
  command.add_flag("--all", flags.all,
                   "Show the events of all sandboxes in the order they were recorded");
  command.add_flag("-f,--follow", flags.follow,
                   "Follow new events; of one sandbox until it is deleted");
  flags.from_option =
      command
          .add_option("--from", flags.from,
                      "With <sandbox_id>: show only events after this sequence number")
          ->type_name("NUMBER")
          ->take_last();
  flags.since_cursor_option =
      command
          .add_option(
              "--since-cursor", flags.since_cursor,
              "With --all: show only events after this cursor (field \"cursor\" of --json), "
              "or \"now\" for new events only")
          ->type_name("CURSOR")
          ->take_last();
  command.add_flag("--json", flags.json, "Print one JSON object per line");
}

}  // namespace agbox::cli
