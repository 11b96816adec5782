// SPDX-License-Identifier: Apache-2.0
// agbox setup: shows what this machine lacks to run sandboxes, asks, and does it. Nothing is done
// before the user agrees, least of all with sudo.
#include <agbox/daemon_inspection.h>
#include <agbox/raw_client.h>
#include <pwd.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/confirmation.h"
#include "cli/daemon_client.h"
#include "cli/daemon_control.h"
#include "cli/program.h"

namespace agbox::cli {

namespace {

struct SetupFlags {
  bool no_input = false;
};

struct SetupStep {
  std::string why;
  Words command;
};

std::string user_name() {
  const passwd* const user = ::getpwuid(::geteuid());
  return user == nullptr ? std::to_string(::geteuid()) : user->pw_name;
}

Words as_root(Words words) {
  if (::geteuid() != 0) words.insert(words.begin(), "sudo");
  return words;
}

std::string text_of(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<SetupStep> steps_for(const sdk::DaemonInspection& found) {
  std::vector<SetupStep> steps;
  if (!found.may_change_firewall) {
    const std::string program = found.program.string();
    // First the owner, because a change of it removes capabilities.
    steps.push_back({"agboxd has access to the engine, so only its group may run it",
                     as_root({"chown", "root:docker", program})});
    steps.push_back({"others of this host may not, because it may change the firewall",
                     as_root({"chmod", "0750", program})});
    steps.push_back({"agboxd may not change the firewall, which isolates sandboxes",
                     as_root({"setcap", "cap_net_admin+ep", program})});
  }
  if (found.engine.is_denied) {
    steps.push_back({"you may not use the engine; log in again afterwards",
                     as_root({"usermod", "-aG", "docker", user_name()})});
  }
  if (has_daemon_service()) {
    steps.push_back({"agboxd is not started when you log in",
                     {"systemctl", "--user", "enable", "agboxd.service"}});
  }
  return steps;
}

int finish(Console& console) {
  if (!start_daemon(console)) return kRuntimeError;
  console.error("agboxd is running. Try: agbox run IMAGE -- COMMAND");
  return kSuccess;
}

int set_up(Console& console, const SetupFlags& flags) {
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  if (client->ping()) {
    console.error(
        "agboxd is running: nothing is left to set up. \"agbox doctor\" checks the rest.");
    return kSuccess;
  }
  const sdk::DaemonInspection found = sdk::inspect_daemon();
  if (found.program.empty()) {
    console.failure("setup: agboxd is neither next to this agbox nor on PATH: install it first");
    return kRuntimeError;
  }
  const std::vector<SetupStep> steps = steps_for(found);
  if (steps.empty()) return finish(console);
  std::string list = "These commands would be run:";
  for (const SetupStep& step : steps)
    list += "\n\n  # " + step.why + "\n  " + text_of(step.command);
  console.error(list + "\n");
  const bool may_ask = !flags.no_input && ::isatty(STDIN_FILENO) == 1;
  if (!may_ask) {
    console.error("Run them yourself, or \"agbox setup\" in a terminal, then: agbox daemon start");
    return kRuntimeError;
  }
  if (!is_confirmed(console, "Run them?")) return kRuntimeError;
  for (const SetupStep& step : steps) {
    console.error("+ " + text_of(step.command));
    const int code = run_program(step.command);
    if (code == 0) continue;
    console.failure("setup: " + text_of(step.command) + " ended with exit code " +
                    std::to_string(code) + "; nothing after it was run");
    return kRuntimeError;
  }
  if (found.engine.is_denied) {
    console.error("Log out and in again, then: agbox daemon start");
    return kSuccess;
  }
  return finish(console);
}

}  // namespace

void add_setup(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(
      parent, "setup", "Show what this machine lacks to run sandboxes, ask, and do it", set_up);
  command.add_flag("--no-input", flags.no_input, "Only show it");
}

}  // namespace agbox::cli
