// SPDX-License-Identifier: Apache-2.0
// Formats points in time, ages and durations for people.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <chrono>
#include <string>

#include "base/clock.h"

namespace agbox::cli {

// "1.2s"
std::string seconds_text(std::chrono::nanoseconds time);

// "90s" or "1.500s"
std::string duration_text(const google::protobuf::Duration& duration);

// "12s", "3m", "5h" or "40d", rounded down; "0s" for a time in the future.
std::string age_text(const google::protobuf::Timestamp& then, WallTime now);

// "2006-01-02T15:04:05Z"
std::string second_text(const google::protobuf::Timestamp& time);

}  // namespace agbox::cli
