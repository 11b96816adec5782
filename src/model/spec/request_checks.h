// SPDX-License-Identifier: Apache-2.0
// The small checks that the parsers of requests share.
#pragma once

#include <google/protobuf/map.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace agbox {

using EnvironmentMap = google::protobuf::Map<std::string, std::string>;

std::unexpected<Error> invalid_argument(std::string message);

// RESOURCE_EXHAUSTED that names `what` and both numbers.
Result<> at_most(std::size_t count, std::size_t most, std::string_view what);

bool contains_nul(std::string_view text);

// Names that an environment can hold; values without a NUL byte. `field` is the request's name for
// the map.
Result<> check_environment(std::string_view field, const EnvironmentMap& environment);

// Refuses names that the daemon sets itself. `setter` is what the caller set the map with.
Result<> check_reserved_names(std::string_view field, std::string_view setter,
                              const EnvironmentMap& environment);

}  // namespace agbox
