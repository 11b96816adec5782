// SPDX-License-Identifier: Apache-2.0
// A connection that is tried from inside of a sandbox to a place that it must not reach, and what
// came of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "model/network/ipv4.h"

namespace agbox {

struct ProbeTarget {
  Ipv4Address address;
  std::uint16_t port = 0;
  std::chrono::milliseconds limit{5000};  // for an answer of any kind
};

struct ProbeReport {
  enum class Outcome {
    Refused,    // with a reset
    Connected,  // the place was reached
    Unknown,    // neither: `detail` says what
  };
  Outcome outcome = Outcome::Unknown;
  std::string detail{};
  bool operator==(const ProbeReport&) const = default;
};

}  // namespace agbox
