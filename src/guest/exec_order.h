// SPDX-License-Identifier: Apache-2.0
// What a runner executes, and its conversion from the daemon's message.
#pragma once

#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "guest/account_files.h"
#include "guest/exec_output.h"

namespace agbox::guest {

struct ExecOrder {
  std::vector<std::string> command;
  std::vector<std::string> environment;  // complete, NAME=value
  std::string working_directory;
  Identity user;
  LogFiles files;
  OutputLimits limits;
};

// The fixed part of the runtime user's environment, as NAME=value.
std::vector<std::string> environment_of(const Identity& user);

// Moves the message's content, so that nothing is in memory twice.
ExecOrder exec_order_of(v1::StartExec message, const Identity& user, LogFiles files);

}  // namespace agbox::guest
