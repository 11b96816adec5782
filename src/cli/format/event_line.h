// SPDX-License-Identifier: Apache-2.0
// Formats one event as one line: sequence, time, type, state, details. Column widths are fixed,
// because a line is printed before the next event is known.
#pragma once

#include <agbox/v1/event.pb.h>

#include <string>

namespace agbox::cli {

std::string event_line(const v1::SandboxEvent& event);

// The same, with the ID of its sandbox in front.
std::string event_line_with_sandbox(const v1::SandboxEvent& event);

}  // namespace agbox::cli
