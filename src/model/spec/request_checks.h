// SPDX-License-Identifier: Apache-2.0
// The small checks that the parsers of requests share.
#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/map.h>
#include <google/protobuf/repeated_field.h>

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

// As messages show text of a request: its beginning if it is long.
std::string excerpt(std::string_view text);
// The same, between quotes.
std::string quoted_excerpt(std::string_view text);

// The words of a command: none is empty or has a NUL byte. `field` is the request's name for it.
Result<> check_tokens(const std::string& field,
                      const google::protobuf::RepeatedPtrField<std::string>& tokens);

// Not negative, and one that google.protobuf.Duration defines.
Result<> check_duration(const std::string& field, const google::protobuf::Duration& duration);

// Names that an environment can hold; values without a NUL byte. `field` is the request's name for
// the map.
Result<> check_environment(std::string_view field, const EnvironmentMap& environment);

// Refuses names that the daemon sets itself. `setter` is what the caller set the map with.
Result<> check_reserved_names(std::string_view field, std::string_view setter,
                              const EnvironmentMap& environment);

}  // namespace agbox
