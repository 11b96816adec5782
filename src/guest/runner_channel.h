// SPDX-License-Identifier: Apache-2.0
// What the guest and the runner of an exec say to each other, over a socket pair that nobody else
// has: packets, a few per exec, so that neither side ever waits to be heard.
#pragma once

#include <optional>
#include <utility>

#include "agbox/guest/v1/link.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace agbox::guest {

struct RunnerReport {
  enum class Kind : char {
    Truncated = 't',    // output is dropped from here on; never after Ended
    CancelTaken = 'c',  // the cancel came before the end
    Ended = 'e',        // the last word; without the exec's id
  };
  Kind kind;
  v1::ExecEnded end;
};

// The guest's end, then the runner's.
Result<std::pair<UniqueFd, UniqueFd>> make_runner_channel();

void send_report(int channel, const RunnerReport& report);
void send_cancel(int channel);

// What came, or whether there will be more.
enum class Heard { Something, NothingYet, NothingMore };
Heard receive_report(int channel, RunnerReport& report);
Heard receive_cancel(int channel);

}  // namespace agbox::guest
