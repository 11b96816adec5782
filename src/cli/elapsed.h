// SPDX-License-Identifier: Apache-2.0
// How long something took, and how long ago something was, as people read it.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <chrono>
#include <string>

#include "base/clock.h"

namespace agbox::cli {

// "1.2s"
std::string seconds_text(std::chrono::nanoseconds time);

// "12s", "3m", "5h" or "40d", rounded down; "0s" for a time that is still to come.
std::string age_text(const google::protobuf::Timestamp& then, WallTime now);

}  // namespace agbox::cli
