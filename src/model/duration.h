// SPDX-License-Identifier: Apache-2.0
// Durations as people write them in config.toml and in specs: Go's grammar, an optional sign and
// one or more <decimal><unit> with ns, us, µs, ms, s, m, h; a bare 0 needs no unit.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace agbox {

Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

}  // namespace agbox
