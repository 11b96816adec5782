// SPDX-License-Identifier: Apache-2.0
// Times as text: 2006-01-02T15:04:05.999999999Z, or with an offset instead of the Z.
#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

namespace agbox {

// nullopt if it is not such a time, or one before 1700 or after 2200.
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace agbox
