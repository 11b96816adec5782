// SPDX-License-Identifier: Apache-2.0
// The runner: one small process per exec, between the guest and the command. It is the parent of
// all that the exec ever starts (a subreaper), drains the command's output into the log files, and
// tells the guest how it ended.
//
//   guest (PID 1) ---- runner ---- command ---- ...
//                        ^ |
//                  pipes | | files of the daemon
//
// Container root like the guest, with no more capabilities than it, and closed to everybody inside
// as it is. It knows nothing of the daemon: neither the link nor its secret.
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

// `null` is /dev/null, opened before anybody inside could have put something else in its place.
// `in_runner` runs in the new process before anything else: what it must forget.
//
// The exec ends when the command does and all that it had written until then is in the files.
// The runner stays for what the command left behind, until no child of it and no writer is left.
std::expected<Runner, NotStarted> start_runner(ExecOrder order, int null,
                                               const std::function<void()>& in_runner);

}  // namespace agbox::guest
