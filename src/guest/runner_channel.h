// SPDX-License-Identifier: Apache-2.0
// Messages between the guest and the runner of an exec, over a private socket pair. A runner that
// does not read, because root in the container has stopped it, gets a cancel all the same: other
// orders are refused long before the socket is full, so that sending never blocks.
#pragma once

#include <cstdint>
#include <utility>

#include "agbox/guest/v1/link.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/terminal.h"

namespace agbox::guest {

struct RunnerReport {
  enum class Kind : char {
    Truncated = 't',    // output is dropped from now on; never after Ended
    CancelTaken = 'c',  // the cancel came before the end
    InputAttached = 'i',
    Ended = 'e',  // the last report; without the exec's ID
  };
  Kind kind;
  v1::ExecEnded end{};
  v1::InputAttached input{};
};

struct RunnerOrder {
  enum class Kind : char {
    Cancel = 'c',
    AttachInput = 'i',
    EndInput = 'e',
    Resize = 'r',
    Signal = 's'
  };
  Kind kind = Kind::Cancel;
  std::uint64_t number = 0;  // of AttachInput: its ID; of Signal: the signal
  TerminalSize size{};
  UniqueFd pipe{};  // of AttachInput; empty if this process is out of descriptors
};

// The guest's end, then the runner's.
Result<std::pair<UniqueFd, UniqueFd>> make_runner_channel();

void send_report(int channel, const RunnerReport& report);
// Returns 0, or the errno if the runner does not read its orders, or a descriptor cannot be passed.
// A cancel is always sent.
int send_order(int channel, const RunnerOrder& order);

// The result of a receive.
enum class Received { Packet, NothingYet, Closed };
Received receive_report(int channel, RunnerReport& report);
Received receive_order(int channel, RunnerOrder& order);

}  // namespace agbox::guest
