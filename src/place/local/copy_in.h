// SPDX-License-Identifier: Apache-2.0
// Copies a file or a directory of this machine into a container: a thread packs it into a pipe, and
// the guest unpacks what comes out of it.
//
//   source ---- pack_tree() ====== pipe ====== agbox-guest receive ---- the container's files
//               own thread                     own process
//
// The disk of the source may be slow, or hang for good: others do not wait for it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "agbox/v1/spec.pb.h"
#include "async/disk_calls.h"
#include "async/semaphore.h"
#include "guestlink/guest_link.h"
#include "ingress/mount_source.h"
#include "model/guest/guest_error.h"
#include "place/place.h"

namespace agbox {

struct CopyServices {
  boost::asio::any_io_executor executor;
  Semaphore& turns;  // limits those that have just begun
  DiskCalls& disk;   // limits all
  std::chrono::milliseconds report_interval{1000};
  // A copy that takes longer goes on without its turn.
  std::chrono::milliseconds longest_turn{5000};
  // How long nothing may move. More than the packer waits for the guest, which has its own reason.
  std::chrono::milliseconds stall{90000};
};

// See SandboxPlace::copy_in().
boost::asio::awaitable<GuestResult<CopyOutcome>> copy_in(
    CopyServices services, std::shared_ptr<guestlink::GuestLink> guest, v1::CopySpec copy,
    KnownSource source, std::function<void(std::string phase)> progress);

}  // namespace agbox
