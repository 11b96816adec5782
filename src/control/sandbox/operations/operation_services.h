// SPDX-License-Identifier: Apache-2.0
// The dependencies of operations. One per daemon; everything in it belongs to the control thread.
#pragma once

#include "async/semaphore.h"
#include "control/sandbox/sandbox_isolation.h"
#include "engine/engine.h"
#include "place/place.h"
#include "store/store.h"

namespace agbox {

struct OperationServices {
  Store& store;
  Engine& engine;
  Place& place;
  SandboxIsolation& isolation;
  // Limits concurrent container starts: the engine does the same work either way, but when fifty
  // sandboxes are requested at once, the first ones are ready in a fraction of the time.
  Semaphore& starts;
  Semaphore& inspections;  // inspections of containers, a few at a time
};

}  // namespace agbox
