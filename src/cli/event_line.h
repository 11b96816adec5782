// SPDX-License-Identifier: Apache-2.0
// One event as one line in columns: sequence, time, type, state, details. The columns have fixed
// widths, because a line is written before the next event is known.
#pragma once

#include <agbox/v1/event.pb.h>

#include <string>

namespace agbox::cli {

std::string event_line(const v1::SandboxEvent& event);

}  // namespace agbox::cli
