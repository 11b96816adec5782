// SPDX-License-Identifier: Apache-2.0
// Where `agbox-guest enter` reports to the guest that the image's entrypoint has completed. Any
// process inside may connect; only a descendant of the entrypoint is accepted, and only once.
//
// An abstract socket: it needs no writable directory, and survives an entrypoint that closes all
// descriptors (as sudo does) or changes the environment.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "agbox/guest/v1/link.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/watch.h"

namespace agbox::guest {

// The process that was accepted.
struct Entered {
  pid_t pid = 0;
  UniqueFd pidfd;  // readable once it has ended; immune to pid reuse
};

class EnterSocket {
 public:
  Result<> open();
  void close() { listener_.reset(); }
  // `admit` is called once.
  void collect(Watches& watches, pid_t entrypoint, const v1::EnterReply& reply,
               std::function<void(Entered)> admit);

 private:
  std::optional<Entered> answer(pid_t entrypoint, const v1::EnterReply& reply);
  UniqueFd listener_;
};

// The client side: waits for the guest's reply.
Result<v1::EnterReply> request_enter();

}  // namespace agbox::guest
