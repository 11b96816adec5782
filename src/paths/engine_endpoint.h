// SPDX-License-Identifier: Apache-2.0
// The engine's socket: DOCKER_HOST or the default. Unix sockets only: with a remote engine none of
// our guarantees about files and networks would hold.
#pragma once

#include <string>

#include "base/result.h"
#include "paths/fixed_paths.h"

namespace agbox {

Result<std::string> resolve_engine_socket(const Environment& environment);

}  // namespace agbox
