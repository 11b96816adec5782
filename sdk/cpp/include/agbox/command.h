// SPDX-License-Identifier: Apache-2.0
// What to run in a sandbox, and how it ended.
#pragma once

#include <agbox/export.h>
#include <agbox/sandbox_info.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace agbox::sdk {

struct Terminal {
  std::uint32_t rows = 24;
  std::uint32_t columns = 80;
  std::string term = {};  // TERM of its environment; empty: xterm
};

struct Command {
  std::vector<std::string> args = {};
  // Absolute. Empty: /workspace, or in a service the directory of its image.
  std::string cwd = {};
  // Added to the environment of the sandbox, or replacing variables of it.
  std::map<std::string, std::string> env = {};
  // A name or uid of the container, optionally with ":group". Empty: agbox, or in a service the
  // user of its image.
  std::string user = {};
  // The name of a service of the sandbox. Empty: the sandbox itself.
  std::string container = {};
  // How long it may run, also if this program ends before. Zero: no limit. Then it is ended, with
  // ExecState::Cancelled, and CommandResult::has_timed_out().
  std::chrono::nanoseconds command_timeout{0};
  // Empty: generated, and it runs exactly once even if the daemon is restarted in between. A given
  // ID is sent once, because an older command may have it.
  std::string exec_id = {};
  // For run(): what its stdin reads, up to the end. Absent: nothing.
  std::optional<std::string> input = {};
  // For start(): Process::write() and end_input() are its stdin.
  bool takes_input = false;
  // It runs in a terminal, whose output is its stdout. Implies `takes_input`.
  std::optional<Terminal> terminal = {};
  // For run(): how much of each output is kept. A sandbox, which is untrusted, can print anything.
  std::size_t max_output = std::size_t{64} << 20;
};

// sh -c LINE
AGBOX_API Command shell(std::string line);

enum class ExecState { Unspecified = 0, Running = 1, Finished = 2, Failed = 3, Cancelled = 4 };
// "FINISHED"; "UNKNOWN_9" for a state of a newer daemon.
AGBOX_API std::string to_string(ExecState state);

// How a command ended.
struct CommandResult {
  std::string exec_id = {};
  ExecState state = ExecState::Unspecified;
  int exit_code = 0;
  // Why it did not finish, for programs, such as TIMEOUT, and for people.
  std::string error_code = {};
  std::string error = {};
  // Of run(): what it printed to stdout and stderr.
  std::string out = {};
  std::string err = {};
  // What was printed beyond Command::max_output, or beyond the daemon's limit, is missing.
  bool is_truncated = false;

  bool is_ok() const { return state == ExecState::Finished && exit_code == 0; }
  bool has_timed_out() const { return error_code == "TIMEOUT"; }
};

// Of the command and the descendants that it waited for.
struct ExecUsage {
  std::chrono::nanoseconds user_cpu{0};
  std::chrono::nanoseconds system_cpu{0};
  std::uint64_t peak_memory_bytes = 0;
};

// A command that runs, or ran, as the daemon described it at one moment.
struct ExecInfo {
  std::string id = {};
  std::string sandbox_id = {};
  ExecState state = ExecState::Unspecified;
  std::vector<std::string> args = {};
  std::string cwd = {};
  std::map<std::string, std::string> env = {};
  std::string user = {};
  std::string container = {};
  std::chrono::nanoseconds command_timeout{0};
  int exit_code = 0;
  std::string error_code = {};
  std::string error = {};
  std::uint64_t last_event_sequence = 0;
  std::optional<Time> started_at = {};
  std::optional<Time> ended_at = {};
  bool is_truncated = false;
  bool is_cancel_requested = false;
  bool takes_input = false;
  bool has_terminal = false;
  std::optional<ExecUsage> usage = {};
};

}  // namespace agbox::sdk
