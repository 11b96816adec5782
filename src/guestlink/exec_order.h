// SPDX-License-Identifier: Apache-2.0
// What a guest is told to run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace agbox::guestlink {

struct ExecOrder {
  std::string exec_id;
  std::vector<std::string> command;
  std::string working_directory;
  std::vector<std::string> environment;  // NAME=value; the last of a name counts
  std::uint64_t output_limit_bytes = 0;  // of both files together; 0: none
  std::uint64_t free_space_reserve_bytes = 0;
  UniqueFd out;  // opened for appending; closed once they are sent
  UniqueFd err;
};

}  // namespace agbox::guestlink
