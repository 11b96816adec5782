// SPDX-License-Identifier: Apache-2.0
// Where the engine listens: DOCKER_HOST, or the usual socket. Only Unix sockets: an engine on
// another machine could hold none of our promises about files and networks.
#pragma once

#include <string>

#include "base/result.h"
#include "paths/fixed_paths.h"

namespace agbox {

Result<std::string> resolve_engine_socket(const Environment& environment);

}  // namespace agbox
