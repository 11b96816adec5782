// SPDX-License-Identifier: Apache-2.0
// What a runner executes, and its conversion from the daemon's message.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guest/account_files.h"
#include "guest/exec_output.h"
#include "guest/terminal.h"

namespace agbox::guest {

struct ExecOrder {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // complete, NAME=value, unless there is a user_name
  std::string working_directory;
  Identity user;
  LogFiles files;
  OutputLimits limits;
  std::string runtime_user_name{};
  // A user whose identity is not known yet: see resolve_user_of().
  std::string user_name{};
  bool has_input = false;
  std::optional<TerminalSize> terminal{};
};

TerminalSize terminal_size_of(const v1::TerminalSize& size);

// The fixed part of a user's environment, as NAME=value.
std::vector<std::string> environment_of(const Identity& user, std::string_view name);
std::vector<std::string> environment_of(const Identity& runtime_user);

// Who runs what does not say otherwise.
struct RuntimeUser {
  const Identity& identity;
  const std::string& name;
};

// Moves the message's content, so that nothing is in memory twice.
ExecOrder exec_order_of(v1::StartExec message, RuntimeUser runtime_user, LogFiles files);

// Replaces the user_name, if there is one, by its identity according to the container's account
// files, and completes the environment. Reads files, so that only a runner may call it. Fails with
// a sentence.
Result<> resolve_user_of(ExecOrder& order);

}  // namespace agbox::guest
