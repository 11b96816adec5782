// SPDX-License-Identifier: Apache-2.0
// Where `agbox-guest enter` tells the guest that the image's entrypoint let it through. Anybody
// inside may knock; only a descendant of the entrypoint is let in, and only once.
//
// The door is an abstract socket: it needs no writable folder, and an entrypoint that closes all
// descriptors (sudo does) or changes the environment does not lose it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>

#include "agbox/guest/v1/link.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/watch.h"

namespace agbox::guest {

// The one that came through.
struct Entered {
  pid_t pid = 0;
  UniqueFd pidfd;  // readable once it has ended, however often its number is used again
};

class EnterDoor {
 public:
  Result<> open();
  void close() { listener_.reset(); }
  // `admit` is told once.
  void collect(Watches& watches, pid_t entrypoint, const v1::EnterReply& reply,
               std::function<void(Entered)> admit);

 private:
  std::optional<Entered> answer(pid_t entrypoint, const v1::EnterReply& reply);
  UniqueFd listener_;
};

// The other side: waits for the guest's answer.
Result<v1::EnterReply> knock();

}  // namespace agbox::guest
