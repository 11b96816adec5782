// SPDX-License-Identifier: Apache-2.0
// What a guest runs as one exec. Its output goes to files that it is given along with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/exec/terminal_size.h"

namespace agbox {

struct ExecOrder {
  std::string exec_id;
  std::vector<std::string> command;
  std::string working_directory;
  std::vector<std::string> environment;  // NAME=value; the last of a name counts
  std::uint64_t output_limit_bytes = 0;  // of both files together; 0: no limit
  std::string user{};      // name or uid in the container, optionally with ":group"; empty: agbox
  bool has_input = false;  // else its stdin is /dev/null
  std::optional<TerminalSize> terminal{};
};

}  // namespace agbox
