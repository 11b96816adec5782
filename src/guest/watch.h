// SPDX-License-Identifier: Apache-2.0
// What the guest's loop waits for: descriptors with their handlers, and a wake-up time.
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

// Collected again in every iteration. A handler may close any descriptor: handlers do not keep
// descriptors, and reading or writing one that is not ready is harmless.
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

// One iteration: waits, then calls the handlers of ready descriptors.
void wait_and_serve(const Watches& watches);

}  // namespace agbox::guest
