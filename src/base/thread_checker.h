// SPDX-License-Identifier: Apache-2.0
// Asserts that an object is used only on the thread that created it, and so needs no lock.
#pragma once

#include <thread>

#include "base/check.h"

namespace agbox {

class ThreadChecker {
 public:
  bool is_current() const { return std::this_thread::get_id() == owner_; }

 private:
  std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace agbox

// The first line of every public method of such an object.
#define AGBOX_ON_ITS_THREAD(checker) AGBOX_CHECK((checker).is_current(), "called on another thread")
