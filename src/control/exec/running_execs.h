// SPDX-License-Identifier: Apache-2.0
// The execs of all sandboxes that have not ended, including those that are being accepted: their
// owners, and how much of the daemon's limits they use.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/thread_checker.h"

namespace agbox {

class SandboxExecs;

class RunningExecs {
 public:
  // The execs of the sandbox that it belongs to; nullptr if it is not running.
  SandboxExecs* owner(std::string_view exec_id) const {
    const auto found = owners_.find(exec_id);
    return found == owners_.end() ? nullptr : found->second.owner;
  }
  std::size_t count() const { return owners_.size(); }
  std::size_t bytes() const { return bytes_; }

  void enter(const std::string& exec_id, SandboxExecs* owner, std::size_t bytes) {
    AGBOX_ON_ITS_THREAD(thread_);
    owners_.emplace(exec_id, Entry{.owner = owner, .bytes = bytes});
    bytes_ += bytes;
  }
  void leave(std::string_view exec_id) {
    AGBOX_ON_ITS_THREAD(thread_);
    const auto found = owners_.find(exec_id);
    if (found == owners_.end()) return;
    bytes_ -= found->second.bytes;
    owners_.erase(found);
  }

 private:
  struct Entry {
    SandboxExecs* owner;
    std::size_t bytes;  // of its request
  };
  ThreadChecker thread_;
  std::map<std::string, Entry, std::less<>> owners_;
  std::size_t bytes_ = 0;
};

}  // namespace agbox
