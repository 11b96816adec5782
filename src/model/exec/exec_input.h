// SPDX-License-Identifier: Apache-2.0
// The place of one writer at the input of an exec: a pipe to the exec's runner. Closing it ends the
// writer's turn and not the input.
#pragma once

#include <cstdint>

#include "base/unique_fd.h"

namespace agbox {

struct ExecInput {
  UniqueFd pipe;  // non-blocking
  // How many bytes the exec has been given before those of this writer.
  std::uint64_t position = 0;
};

}  // namespace agbox
