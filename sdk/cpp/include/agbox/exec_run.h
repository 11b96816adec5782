// SPDX-License-Identifier: Apache-2.0
// Runs a command in a sandbox: starts it, streams its output and returns how it ended. Survives a
// restart of the daemon, and so does the command.
//
//   std::string out;
//   auto exec = run(client, "box-1", {"make", "test"},
//                   {.sinks = {.on_stdout = [&](std::string_view bytes) { out += bytes; }}});
//   if (exec && exec->exit_code() == 0) celebrate(out);
#pragma once

#include <agbox/output_follower.h>

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::sdk {

// Receive the output, in order. They are called on two threads, so that one that blocks does not
// delay the other. A stream without a sink is not read.
struct OutputSinks {
  std::function<void(std::string_view)> on_stdout = {};
  std::function<void(std::string_view)> on_stderr = {};
};

struct RunOptions {
  // A service or companion of the sandbox. Empty: the primary container.
  std::string container = {};
  // Empty: /workspace, or in a service or companion the directory of its image.
  std::string cwd = {};
  std::map<std::string, std::string> env_overrides = {};
  // A name or uid of the container. Empty: agbox, or in a service or companion that of its image.
  std::string user = {};
  // Zero: no limit. Then the command is ended, as cancelled and with the error code TIMEOUT.
  std::chrono::nanoseconds timeout{0};
  // As of start_exec().
  std::string exec_id = {};
  OutputSinks sinks = {};
  FollowOptions follow = {};
};

// Creates an exec and returns its ID. If the request has none it is generated, and then the exec is
// created once although the request is retried after a loss; an error then has it as exec_id(). A
// given ID is sent once, because an older exec may have it.
Result<std::string> start_exec(const RawClient& client, v1::CreateExecRequest request,
                               const FollowOptions& options = {});

// A stop request ends the wait, not the command.
Result<v1::ExecStatus> run(const RawClient& client, const std::string& sandbox_id,
                           const std::vector<std::string>& command, const RunOptions& options = {});

// Reads the output of an exec: until it ends, or what exists so far.
Result<void> read_output(const RawClient& client, const std::string& exec_id,
                         const OutputSinks& sinks, const FollowOptions& options = {},
                         OutputExtent extent = OutputExtent::UntilExit);

// Waits until an exec has ended: reads its state and then follows the events after it, without
// polling.
Result<v1::ExecStatus> wait_for_exec(const RawClient& client, const std::string& exec_id,
                                     const FollowOptions& options = {});

bool is_terminal(v1::ExecState state);

}  // namespace agbox::sdk
