// SPDX-License-Identifier: Apache-2.0
// The subscriptions to a feed of events. Each belongs to its reader; the feed only wakes it.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

#include "base/thread_checker.h"

namespace agbox {

template <class Subscription>
class Followers {
 public:
  void add(const std::shared_ptr<Subscription>& follower) {
    AGBOX_ON_ITS_THREAD(thread_);
    followers_.push_back(follower);
  }
  void forget_those_who_left() {
    std::erase_if(followers_, [](const auto& follower) { return follower.expired(); });
  }
  bool empty() const { return followers_.empty(); }
  std::size_t size() const { return followers_.size(); }

  // A follower may unsubscribe, or another subscribe, while one is being called.
  template <class Function>
  void for_each(Function function) const {
    AGBOX_ON_ITS_THREAD(thread_);
    const auto followers = followers_;
    for (const auto& follower : followers) {
      if (const auto alive = follower.lock()) function(*alive);
    }
  }

 private:
  ThreadChecker thread_;
  std::list<std::weak_ptr<Subscription>> followers_;
};

}  // namespace agbox
