// SPDX-License-Identifier: Apache-2.0
// The dependencies of actors and of what manages them. One per daemon; everything in it belongs to
// the control thread.
#pragma once

#include "async/task_group.h"
#include "base/clock.h"
#include "base/log.h"
#include "control/all_events.h"
#include "control/control_loop.h"
#include "control/engine_status.h"
#include "control/exec/running_execs.h"
#include "control/sandbox/operations/operation_services.h"
#include "control/sandbox/sandbox_isolation.h"
#include "control/upkeep/deadlines.h"
#include "engine/engine.h"
#include "model/sandbox/time_to_live.h"
#include "place/place.h"
#include "store/store.h"

namespace agbox {

struct ActorServices {
  ControlLoop& loop;
  const Clock& clock;
  Logger log;
  Store& store;
  Engine& engine;
  EngineStatus& engine_status;
  Place& place;
  SandboxIsolation& isolation;
  OperationServices& operations;
  RunningExecs& execs;
  AllEvents& all_events;
  TaskGroup& tasks;
  Deadlines& deadlines;
  Deadlines& restarts;       // of containers that should run but do not
  Deadlines& exec_waits;     // of execs that wait for such a restart
  Deadlines& exec_timeouts;  // of execs that may not take longer
  Deadlines& verifications;  // of sandboxes whose isolation failed
  Deadlines& leases;         // of sandboxes that no client holds
  bool pauses_unisolated;    // isolation.on_failure
  TimesToLive ttls;
  // The configuration that new sandboxes keep.
  store::v1::CreatedWith created_with;
  bool is_shutting_down = false;
};

}  // namespace agbox
