// SPDX-License-Identifier: Apache-2.0
// A client that writes to the input of an exec, as control knows it: until another one takes over.
#pragma once

#include <functional>

namespace agbox {

struct InputWriter {
  // Stops it, and calls `released` on the control thread when it writes nothing more.
  std::function<void(std::function<void()> released)> take_over;
};

}  // namespace agbox
