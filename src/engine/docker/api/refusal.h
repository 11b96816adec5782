// SPDX-License-Identifier: Apache-2.0
// The errors of failed calls to Docker, with the attempt and Docker's own message.
#pragma once

#include <string>
#include <string_view>

#include "engine/docker/api/engine_call.h"
#include "engine/engine_error.h"

namespace agbox {

// "<attempt> <subject>", for example "start container agbox-primary-s1".
std::string describe(EngineCall call, std::string_view subject);

// The error for an answer with a status other than 2xx and 304.
EngineError refusal(EngineCall call, std::string_view subject, int http_status,
                    std::string_view body);

// True if the engine does not support the API version of our path: it is not the engine that we
// negotiated with.
bool is_version_mismatch(const EngineError& error);

// Human-readable: why no engine can be used now.
std::string describe_unreachable(const EngineError& error);

}  // namespace agbox
