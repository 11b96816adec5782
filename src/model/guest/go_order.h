// SPDX-License-Identifier: Apache-2.0
// What a guest runs in its container once the sandbox is isolated: the image's entrypoint and the
// caller's command.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace agbox {

struct GoOrder {
  std::string secret;  // of this start, stored before it is sent
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::string working_directory = "/workspace";
  std::chrono::milliseconds entrypoint_limit{60000};
};

}  // namespace agbox
