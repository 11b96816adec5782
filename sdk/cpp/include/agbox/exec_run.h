// SPDX-License-Identifier: Apache-2.0
// Runs a command in a sandbox: begins it, hands over what it writes while it writes it, and tells
// how it ended. A restart of the daemon is waited out; the command does not notice it.
//
//   std::string out;
//   auto exec = run(client, "box-1", {"make", "test"},
//                   {.sinks = {.on_stdout = [&](std::string_view bytes) { out += bytes; }}});
//   if (exec && exec->exit_code() == 0) celebrate(out);
#pragma once

#include <agbox/output_follower.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::sdk {

// Where the bytes of the two streams go, in order. The two are called on two threads, so that one
// that blocks does not hold up the other; without a sink a stream is not read.
struct OutputSinks {
  std::function<void(std::string_view)> on_stdout = {};
  std::function<void(std::string_view)> on_stderr = {};
};

struct RunOptions {
  // Empty: /workspace.
  std::string cwd = {};
  std::map<std::string, std::string> env_overrides = {};
  // Empty: a new one is made, and if the daemon's answer is lost the request is repeated under it;
  // an error then has it as exec_id(). A given one is sent once, because an exec that has it may be
  // an older one.
  std::string exec_id = {};
  OutputSinks sinks = {};
  FollowOptions follow = {};
};

// A stop ends the waiting, not the command.
Result<v1::ExecStatus> run(const RawClient& client, const std::string& sandbox_id,
                           const std::vector<std::string>& command, const RunOptions& options = {});

// What an exec wrote: all of it until its end, or what is there.
Result<void> read_output(const RawClient& client, const std::string& exec_id,
                         const OutputSinks& sinks, const FollowOptions& options = {},
                         OutputExtent extent = OutputExtent::UntilTheEnd);

// Waits until an exec has ended: its state as the baseline, then every event behind it, so that
// nothing is missed and nothing is polled.
Result<v1::ExecStatus> wait_for_exec(const RawClient& client, const std::string& exec_id,
                                     const FollowOptions& options = {});

bool is_terminal(v1::ExecState state);

}  // namespace agbox::sdk
