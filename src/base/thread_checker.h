// SPDX-License-Identifier: Apache-2.0
// Of which thread an object is: the one that made it. What belongs to one thread needs no lock, as
// long as nobody else calls it.
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

// The first line of public methods of such an object.
#define AGBOX_ON_ITS_THREAD(checker) \
  AGBOX_CHECK((checker).is_current(), "called on another thread than the one it belongs to")
