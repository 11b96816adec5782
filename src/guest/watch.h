// SPDX-License-Identifier: Apache-2.0
// What the guest's one loop waits for: descriptors, each with what to do when it is ready, and the
// moments at which somebody wants to be woken.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace agbox::guest {

using Moment = std::chrono::steady_clock::time_point;

struct Watch {
  int fd;
  short events;  // POLLIN, POLLOUT
  std::function<void()> ready;
};

// Collected anew in every round. A handler may close any descriptor: handlers do not remember
// descriptors, and reading or writing one that is not ready does no harm.
struct Watches {
  std::vector<Watch> watches;
  std::optional<Moment> wake_at;

  void add(int fd, short events, std::function<void()> ready) {
    watches.push_back({fd, events, std::move(ready)});
  }
  void wake(Moment moment) {
    if (!wake_at || moment < *wake_at) wake_at = moment;
  }
};

// One round: waits for any of it, and calls what is ready.
void wait_and_serve(const Watches& watches);

}  // namespace agbox::guest
