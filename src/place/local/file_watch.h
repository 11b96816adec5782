// SPDX-License-Identifier: Apache-2.0
// Notifies when a file may have changed in any way: rewritten, replaced by a rename, reached
// through another link, or removed and created again together with its directories.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/result.h"

namespace agbox {

// Calls `on_change` as soon as it watches, so that no change since the caller's own check is
// missed, and again shortly after each change. Returns an error if the kernel refuses to watch;
// ends when cancelled. The files need not exist; their paths are absolute.
boost::asio::awaitable<Result<>> watch_files(std::vector<std::filesystem::path> files,
                                             std::function<void()> on_change);

}  // namespace agbox
