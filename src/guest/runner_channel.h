// SPDX-License-Identifier: Apache-2.0
// Messages between the guest and the runner of an exec, over a private socket pair: a few packets
// per exec, so that sending never blocks.
#pragma once

#include <optional>
#include <utility>

#include "agbox/guest/v1/link.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox::guest {

struct RunnerReport {
  enum class Kind : char {
    Truncated = 't',    // output is dropped from now on; never after Ended
    CancelTaken = 'c',  // the cancel came before the end
    Ended = 'e',        // the last report; without the exec's ID
  };
  Kind kind;
  v1::ExecEnded end;
};

// The guest's end, then the runner's.
Result<std::pair<UniqueFd, UniqueFd>> make_runner_channel();

void send_report(int channel, const RunnerReport& report);
void send_cancel(int channel);

// The result of a receive.
enum class Received { Packet, NothingYet, Closed };
Received receive_report(int channel, RunnerReport& report);
Received receive_cancel(int channel);

}  // namespace agbox::guest
