// SPDX-License-Identifier: Apache-2.0
// agbox daemon: starts and stops this user's daemon, and shows its state and its log.
#include <agbox/daemon_inspection.h>
#include <agbox/raw_client.h>

#include <filesystem>

#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/daemon_control.h"
#include "cli/format/printable.h"

namespace agbox::cli {

namespace {

struct NoFlags {};

struct DaemonStatusFlags {
  bool json = false;
};

struct DaemonLogsFlags {
  bool follow = false;
  std::string tail = "100";
};

int start_by_command(Console& console, const NoFlags&) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  if (client->ping()) {
    console.error("agboxd is running already.");
    return kSuccess;
  }
  if (!start_daemon(console)) return kRuntimeError;
  console.error("agboxd is running.");
  return kSuccess;
}

int stop_by_command(Console& console, const NoFlags&) {
  if (!stop_daemon(console)) return kRuntimeError;
  console.error("Sandboxes and their commands go on; \"agbox daemon start\" starts agboxd again.");
  return kSuccess;
}

int show_status(Console& console, const DaemonStatusFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const auto response = client->ping();
  if (!response) return fail_call(console, "daemon status", response.error());
  const auto process = sdk::inspect_daemon().lock_holder;
  const std::string number = process ? std::to_string(*process) : "";
  if (flags.json) {
    console.out("{\n  \"version\": " + json_quote(response->version()) + ",\n  \"process\": " +
                (process ? number : "null") + ",\n  \"engine\": " + json_quote(response->engine()) +
                ",\n  \"socket\": " + json_quote(client->socket().string()) + "\n}\n");
    return kSuccess;
  }
  console.out("version=" + printable_line(response->version()) + "\nprocess=" + number +
              "\nengine=" + printable_line(response->engine()) +
              "\nsocket=" + client->socket().string() + "\n");
  return kSuccess;
}

int show_daemon_logs(Console& console, const DaemonLogsFlags& flags) {
  if (flags.tail.find_first_not_of("0123456789") != std::string::npos) {
    return refuse_usage(console, "--tail: \"" + flags.tail + "\" is not a number of lines");
  }
  if (has_daemon_service()) {
    Words words = {"journalctl", "--user", "--unit", "agboxd", "--lines", flags.tail};
    if (flags.follow) words.emplace_back("--follow");
    return run_program(words);
  }
  const std::filesystem::path log = daemon_log();
  std::error_code ignored;
  if (!std::filesystem::exists(log, ignored)) {
    console.failure("agboxd has no log " + log.string() +
                    ": it was not started with \"agbox daemon start\"; see where it was started");
    return kRuntimeError;
  }
  Words words = {"tail", "-n", flags.tail};
  if (flags.follow) words.emplace_back("-F");
  words.push_back(log.string());
  return run_program(words);
}

}  // namespace

void add_daemon(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand("daemon", "Start and stop agboxd, the daemon");
  line.requires_subcommand(command);
  line.add(command, "start", "Start the daemon and wait until it is reachable", start_by_command);
  line.add(command, "stop", "Stop the daemon; sandboxes and their commands go on", stop_by_command);
  auto [status_command, status_flags] =
      line.add(command, "status", "Show the daemon; exit code 1 if it is not running", show_status);
  status_command.add_flag("--json", status_flags.json, "Print JSON");
  auto [logs_command, logs_flags] =
      line.add(command, "logs", "Show the log of the daemon", show_daemon_logs);
  logs_command.add_flag("-f,--follow", logs_flags.follow, "Follow the log");
  logs_command
      .add_option("-n,--tail", logs_flags.tail,
                  "Number of lines to show from the end (default 100)")
      ->type_name("LINES")
      ->take_last();
}

}  // namespace agbox::cli
