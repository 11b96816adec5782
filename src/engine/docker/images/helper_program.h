// SPDX-License-Identifier: Apache-2.0
// Runs a small program of the user's, gives it one text and takes its answer. It gets a process
// group of its own, and all of that is gone when the deadline passes or the caller gives up.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "paths/fixed_paths.h"

namespace agbox {

struct HelperRun {
  std::string program;  // looked up in the environment's PATH
  std::vector<std::string> arguments{};
  std::string input{};
  Environment environment{};
  std::size_t largest_output = 64 * 1024;
};

struct HelperAnswer {
  std::string output;
  int exit_code = 0;  // 128 + N where signal N ended it
};

boost::asio::awaitable<Result<HelperAnswer>> run_helper(HelperRun run,
                                                        std::chrono::milliseconds deadline);

}  // namespace agbox
