// SPDX-License-Identifier: Apache-2.0
// The check before each start of a container. An engine opens /etc/passwd and /etc/group of a
// container that it starts, even if it needs no name: first from outside, below the container's
// mounts, and then inside. Root in a sandbox, or an image, can have something there that blocks it,
// and with it every call about the container: a FIFO, a device, an endless file.
#pragma once

#include <string>

#include "engine/docker/api/engine_client.h"
#include "engine/engine_error.h"

namespace agbox {

// Unsafe if one of them is neither absent nor a file of ordinary size. A link must lead to such a
// file that is no part of a mount: only then both views of the engine see the same. Opens nothing.
// The container must not run, or the result could be outdated.
EngineAwaitable<> check_account_files(EngineClient& client, std::string container_id,
                                      CallOptions options);

}  // namespace agbox
