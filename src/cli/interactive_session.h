// SPDX-License-Identifier: Apache-2.0
// An exec with the stdin, or the whole terminal, of this program.
#pragma once

#include <agbox/exec_session.h>

#include <atomic>
#include <stop_token>
#include <string>

#include "base/unique_fd.h"
#include "cli/console.h"
#include "cli/detach_keys.h"

namespace agbox::cli {

class InteractiveSession {
 public:
  struct Options {
    bool takes_input = true;   // stdin goes to the exec
    bool is_terminal = false;  // the exec has one, and stdin is one
    DetachKeys detach_keys;
    bool begins_at_start = true;  // of the output; else with its last 64 KiB
  };

  InteractiveSession(const Console& console, const sdk::RawClient& client, std::string exec_id,
                     Options options);

  // Until the exec has ended; ErrorKind::Cancelled if the user detached from it before.
  sdk::Result<v1::ExecStatus> run(const sdk::OutputSinks& sinks, const std::stop_token& stop);
  bool is_detached() const { return is_detached_; }

 private:
  // On a thread of its own, because it waits for keys.
  void pass_input(sdk::ExecSession& session, int until);
  bool pass_bytes(sdk::ExecSession& session);

  const Console& console_;
  const sdk::RawClient& client_;
  std::string exec_id_;
  Options options_;
  std::stop_source detach_;
  std::atomic<bool> is_detached_ = false;
};

}  // namespace agbox::cli
