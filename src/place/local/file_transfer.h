// SPDX-License-Identifier: Apache-2.0
// Copies files into or out of a running container: a process inside has one end of a pipe, the
// caller has the other.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>

#include "base/result.h"
#include "guestlink/guest_link.h"
#include "model/guest/file_order.h"

namespace agbox {

// See SandboxPlace::transfer_files().
boost::asio::awaitable<Result<FilesReport>> transfer_files(
    std::shared_ptr<guestlink::GuestLink> guest, FileOrder order,
    std::function<void(FilePipe)> on_open);

}  // namespace agbox
