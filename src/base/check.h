// SPDX-License-Identifier: Apache-2.0
// A broken invariant aborts the process: recovery at the next start is safer than carrying on.
#pragma once

#include <string_view>

namespace agbox {

// Writes one line to stderr and aborts.
[[noreturn]] void die(std::string_view why);

}  // namespace agbox

#define AGBOX_CHECK(condition, why)                                       \
  do {                                                                    \
    if (!(condition)) ::agbox::die("check failed: " #condition ": " why); \
  } while (false)
