// SPDX-License-Identifier: Apache-2.0
// Tells when a file may have become another, whatever was done to it: written anew, renamed over,
// reached through another link, removed and made again together with its folders.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/result.h"

namespace agbox {

// Calls `on_change` as soon as it watches, so that nothing is missed since the caller's own look,
// and again a moment after each change. Ends where the kernel refuses to watch, which is told, and
// where it is cancelled. The files need not be there; their paths are absolute.
boost::asio::awaitable<Result<>> watch_files(std::vector<std::filesystem::path> files,
                                             std::function<void()> on_change);

}  // namespace agbox
