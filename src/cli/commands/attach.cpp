// SPDX-License-Identifier: Apache-2.0
// agbox attach: connects the terminal, or stdin, to a running exec that was created with -i or -t.
// Of one that has ended it prints the end of the output, and returns its exit code.
#include <agbox/exec_run.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/detach_keys.h"
#include "cli/foreground_exec.h"
#include "cli/id_lookup.h"

namespace agbox::cli {

namespace {

struct AttachFlags {
  std::string exec_id;
  std::string detach_keys = kDefaultDetachKeys;
  bool no_stdin = false;
};

int attach(Console& console, const AttachFlags& flags) {
  const auto detach_keys = DetachKeys::parse(flags.detach_keys);
  if (!detach_keys) return refuse_usage(console, detach_keys.error().message());
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const auto found = find_exec(*client, flags.exec_id);
  if (!found) return fail_call(console, "attach to exec", found.error());
  const v1::ExecStatus& exec = *found;
  const bool is_running = !sdk::is_terminal(exec.state());
  const bool takes_input = is_running && !flags.no_stdin;
  if (takes_input && !exec.stdin()) {
    console.failure("attach to exec: exec " + exec.exec_id() +
                    " has no stdin, because it was not started with -i or -t; use agbox attach "
                    "--no-stdin or agbox logs -f to follow its output");
    return kRuntimeError;
  }
  if (takes_input && exec.tty() && ::isatty(STDIN_FILENO) == 0) {
    return refuse_usage(console,
                        "exec " + exec.exec_id() +
                            " has a terminal, and stdin is none; run agbox attach in a terminal, "
                            "or use --no-stdin");
  }
  const Interrupt interrupt;
  ForegroundExec foreground(console, *client, interrupt, exec.exec_id(),
                            ForegroundExec::OnInterrupt::Leave);
  foreground.attach({.takes_input = takes_input,
                     .is_terminal = takes_input && exec.tty(),
                     .detach_keys = *detach_keys,
                     .begins_at_start = false});
  return foreground.exit_code();
}

}  // namespace

void add_attach(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "attach", "Connect stdin and output to a running exec", attach);
  command.add_option("exec_id", flags.exec_id, "Exec ID, or its beginning")->required();
  command.add_flag("--no-stdin", flags.no_stdin, "Only follow the output");
  command
      .add_option("--detach-keys", flags.detach_keys,
                  "Key sequence to detach from a terminal (default ctrl-p,ctrl-q)")
      ->type_name("KEYS")
      ->take_last();
}

}  // namespace agbox::cli
