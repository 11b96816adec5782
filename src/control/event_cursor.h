// SPDX-License-Identifier: Apache-2.0
// A position in the events of all sandboxes, as text for clients. It names the store that it is
// of, so that one of another store is refused and not taken for a position of this one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

std::string event_cursor(std::string_view instance_id, std::uint64_t position);

// INVALID_ARGUMENT if it is not a cursor; EVENT_CURSOR_OUT_OF_RANGE if it is of another store, or
// beyond the newest event.
Result<std::uint64_t> parse_event_cursor(std::string_view instance_id, std::uint64_t newest,
                                         const std::string& cursor);

}  // namespace agbox
