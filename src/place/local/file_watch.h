// SPDX-License-Identifier: Apache-2.0
// Notifies when a file may have changed in any way: rewritten, replaced by a rename, reached
// through another link, or removed and created again together with its directories.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <filesystem>
#include <functional>
#include <vector>

namespace agbox {

// Calls `on_change` as soon as it watches, so that no change since the caller's own check is
// missed, and again shortly after each change; while the kernel refuses to watch, every few seconds
// instead. Ends when cancelled. The files need not exist; their paths are absolute.
boost::asio::awaitable<void> watch_files(std::vector<std::filesystem::path> files,
                                         std::function<void()> on_change);

}  // namespace agbox
