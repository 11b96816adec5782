// SPDX-License-Identifier: Apache-2.0
// What actors and operations work with. One per daemon; everything in it is of the control thread.
#pragma once

#include <optional>
#include <string>

#include "async/semaphore.h"
#include "async/task_group.h"
#include "base/clock.h"
#include "base/log.h"
#include "control/control_loop.h"
#include "control/exec/running_execs.h"
#include "control/sandbox/operations/subnet_pool.h"
#include "control/sandbox/sandbox_isolation.h"
#include "control/upkeep/deadlines.h"
#include "execlog/spare_files.h"

#include "engine/docker/api/engine_client.h"
#include "engine/docker/images/image_pulls.h"
#include "guestlink/guest_links.h"
#include "model/sandbox/time_to_live.h"
#include "store/store.h"

namespace agbox {

struct Services {
  ControlLoop& loop;
  // Where run_blocking() works: what may hang in a disk or in the kernel.
  asio::any_io_executor blocking;
  const Clock& clock;
  Logger log;
  Store& store;
  EngineClient& engine;
  ImagePulls& pulls;
  guestlink::GuestLinks& guests;
  SandboxIsolation& isolation;
  SubnetPool& subnets;
  // A few container starts at a time: the engine does the same work either way, but when fifty
  // sandboxes are asked for at once, the first ones are ready in a fraction of the time.
  Semaphore& starts;
  Semaphore& looks;  // at containers, a few at a time
  RunningExecs& execs;
  SpareFiles& spare_files;  // for the output of execs
  TaskGroup& tasks;
  TaskGroup& calls;  // what unbroken() carries on with
  Deadlines& deadlines;
  Deadlines& restarts;       // of containers that should run and do not
  Deadlines& verifications;  // of isolations that do not hold
  bool pauses_unisolated;    // isolation.on_failure
  TimesToLive ttls;
  // What new sandboxes keep of today's configuration.
  store::v1::CreatedWith created_with;
  bool was_engine_asked = false;               // whether the first try to reach it has ended
  std::optional<EngineIdentity> engine_now{};  // nothing while no engine answers
  std::string engine_problem = "the Docker Engine has not answered yet";  // while it is nothing
  bool is_shutting_down = false;
};

}  // namespace agbox
