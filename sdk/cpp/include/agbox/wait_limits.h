// SPDX-License-Identifier: Apache-2.0
// What ends a wait before what it waits for has happened.
#pragma once

#include <chrono>
#include <stop_token>

namespace agbox::sdk {

struct WaitLimits {
  // A stop request, from any thread, ends the wait with ErrorKind::Cancelled.
  std::stop_token stop = {};
  // ErrorKind::Timeout after this long. Zero: no limit.
  std::chrono::milliseconds wait_timeout{0};
};

}  // namespace agbox::sdk
