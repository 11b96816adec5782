// SPDX-License-Identifier: Apache-2.0
// The size of an exec's terminal, in characters.
#pragma once

#include <cstdint>

#include "agbox/v1/exec.pb.h"
#include "base/result.h"

namespace agbox {

struct TerminalSize {
  std::uint16_t rows = 0;
  std::uint16_t columns = 0;

  bool operator==(const TerminalSize&) const = default;
};

// INVALID_ARGUMENT that names `field` unless both are 1 to 65535.
Result<TerminalSize> parse_terminal_size(const char* field, const v1::TerminalSize& size);

}  // namespace agbox
