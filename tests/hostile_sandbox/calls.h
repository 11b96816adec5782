// SPDX-License-Identifier: Apache-2.0
// Calls into the kernel, each under a name, with arguments with which it does no harm even where it
// is allowed: the same calls are made in a container that may do everything.
#pragma once

#include <span>
#include <string_view>

namespace agbox::hostile {

struct Call {
  std::string_view name;
  int (*attempt)();  // 0, or the errno that the kernel or a filter answered with
};

std::span<const Call> all_calls();

}  // namespace agbox::hostile
