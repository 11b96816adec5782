// SPDX-License-Identifier: Apache-2.0
#include "control/control_loop.h"

#include "base/check.h"

namespace agbox {

void ControlLoop::run() {
  AGBOX_ON_CONTROL_THREAD(*this);
  io_.run();
}

}  // namespace agbox
