// SPDX-License-Identifier: Apache-2.0
// Runs a helper program of the user with one input and returns its output. It gets its own process
// group, which is killed at the deadline or on cancellation.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "paths/fixed_paths.h"

namespace agbox {

namespace asio = boost::asio;

struct HelperRun {
  std::string program;  // looked up in the environment's PATH
  std::vector<std::string> arguments{};
  std::string input{};
  Environment environment{};
  std::size_t largest_output = 64 * 1024;
};

struct HelperAnswer {
  std::string output;
  int exit_code = 0;  // 128 + N if killed by signal N
};

asio::awaitable<Result<HelperAnswer>> run_helper(HelperRun run, std::chrono::milliseconds deadline);

}  // namespace agbox
