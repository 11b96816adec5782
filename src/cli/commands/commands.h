// SPDX-License-Identifier: Apache-2.0
// The commands of agbox: add_<name>() adds the command and its action to the tree.
// command_line.cpp has the table.
#pragma once

#include "cli/command_line.h"

namespace agbox::cli {

void add_agent(CommandLine& line, CLI::App& parent);
void add_apply(CommandLine& line, CLI::App& parent);
void add_attach(CommandLine& line, CLI::App& parent);
// One per agent that agbox knows.
void add_builtin_agents(CommandLine& line, CLI::App& parent);
void add_completion(CommandLine& line, CLI::App& parent);
void add_cp(CommandLine& line, CLI::App& parent);
void add_daemon(CommandLine& line, CLI::App& parent);
void add_diff(CommandLine& line, CLI::App& parent);
void add_doctor(CommandLine& line, CLI::App& parent);
void add_events(CommandLine& line, CLI::App& parent);
void add_logs(CommandLine& line, CLI::App& parent);
void add_manual(CommandLine& line, CLI::App& parent);
void add_ping(CommandLine& line, CLI::App& parent);
void add_prune(CommandLine& line, CLI::App& parent);
void add_run(CommandLine& line, CLI::App& parent);
void add_setup(CommandLine& line, CLI::App& parent);
void add_stats(CommandLine& line, CLI::App& parent);
void add_version(CommandLine& line, CLI::App& parent);

// The same commands as those of agbox sandbox, as docker's users type them: sandbox get, list,
// delete, resume and stop. They accept prefixes of IDs, and several IDs where that makes sense.
void add_inspect(CommandLine& line, CLI::App& parent);
void add_ps(CommandLine& line, CLI::App& parent);
void add_rm(CommandLine& line, CLI::App& parent);
void add_start(CommandLine& line, CLI::App& parent);
void add_stop(CommandLine& line, CLI::App& parent);
// exec run in the same way. Returns the command, which is also the parent of exec run and others.
CLI::App& add_flat_exec(CommandLine& line, CLI::App& parent);

// Added last: it has a subcommand for every command that `parent` has by then.
void add_help(CommandLine& line, CLI::App& parent);

// Subcommands of agbox sandbox.
void add_sandbox_create(CommandLine& line, CLI::App& parent);
void add_sandbox_delete(CommandLine& line, CLI::App& parent);
void add_sandbox_exec(CommandLine& line, CLI::App& parent);
void add_sandbox_get(CommandLine& line, CLI::App& parent);
void add_sandbox_list(CommandLine& line, CLI::App& parent);
void add_sandbox_resume(CommandLine& line, CLI::App& parent);
void add_sandbox_stop(CommandLine& line, CLI::App& parent);
void add_sandbox_wait(CommandLine& line, CLI::App& parent);

// Subcommands of agbox exec.
void add_exec_cancel(CommandLine& line, CLI::App& parent);
void add_exec_get(CommandLine& line, CLI::App& parent);
void add_exec_list(CommandLine& line, CLI::App& parent);
void add_exec_run(CommandLine& line, CLI::App& parent);
void add_exec_wait(CommandLine& line, CLI::App& parent);

}  // namespace agbox::cli
