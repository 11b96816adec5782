// SPDX-License-Identifier: Apache-2.0
// Connections that the daemon has us try, from inside, to places that no sandbox may reach. Each is
// told once: refused, connected, or what happened instead.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guest/watch.h"

namespace agbox::guest {

class ConnectionTries {
 public:
  using Tell = std::function<void(const v1::ConnectionTried&)>;

  explicit ConnectionTries(Tell tell) : tell_(std::move(tell)) {}

  void begin(const v1::TryConnection& order);
  void collect(Watches& watches);
  // Tells those whose time is over.
  void end_overdue();
  // Nobody wants to know any more.
  void give_up() { tries_.clear(); }

 private:
  struct Try {
    std::uint64_t id = 0;
    UniqueFd socket;
    Moment deadline;
  };
  void on_ready(std::uint64_t id);
  void tell(std::uint64_t id, int problem);
  void tell_unknown(std::uint64_t id, std::string detail);

  Tell tell_;
  std::vector<Try> tries_;
};

}  // namespace agbox::guest
