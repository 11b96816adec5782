// SPDX-License-Identifier: Apache-2.0
// What to do with a companion, from what the engine shows of it. Pure.
#pragma once

#include <string>

#include "model/sandbox/companion.h"

namespace agbox {

// How the supervision of a sandbox's companions begins.
enum class CompanionBegin {
  Create,  // with the sandbox
  Resume,  // with the sandbox: what does not run is started, and nothing is created
  Adopt,   // the sandbox is ready: what should run is found as it is
};

struct CompanionView {
  CompanionSeen seen;
  // It may be made: its first creation is not complete.
  bool may_create = false;
  // Its sandbox is being created or resumed, and it was not started for that yet.
  bool is_start_due = false;
  // Our own run of its health check has succeeded since its latest start.
  bool is_proven_healthy = false;
};

enum class CompanionStep {
  Create,
  Start,
  Restart,      // it ended, and should run
  Reattach,     // it runs without its network: stop it, then start it
  AwaitHealth,  // it runs, and its health is not decided
  Ready,
  Unhealthy,
  Wait,  // paused by another process
  Lost,  // it cannot come back
};

CompanionStep companion_plan(const CompanionView& view);

}  // namespace agbox
