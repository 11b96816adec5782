// SPDX-License-Identifier: Apache-2.0
// The runner: one small process per exec, between the guest and the command. It adopts all
// processes of the exec (as a subreaper), copies the command's output into the log files, and
// reports the end to the guest.
//
//   guest (PID 1) ---- runner ---- command ---- ...
//                        ^ |
//                  pipes | | files of the daemon
//
// Root in the container like the guest, with the same capabilities, and undumpable too. It has no
// access to the daemon: neither to the link nor to its secret.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/unique_fd.h"
#include "guest/child.h"
#include "guest/exec_order.h"

namespace agbox::guest {

struct Runner {
  pid_t pid = 0;
  UniqueFd channel;  // see runner_channel.h
};

// `null` is /dev/null, opened before any process inside could replace it. `in_runner` runs first in
// the new process and drops what it must not know.
//
// The exec ends when the command does and its output up to then is in the files. The runner stays
// for background processes until no child and no writer is left.
std::expected<Runner, NotStarted> start_runner(ExecOrder order, int null,
                                               const std::function<void()>& in_runner);

}  // namespace agbox::guest
