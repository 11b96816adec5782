// SPDX-License-Identifier: Apache-2.0
// An exec in the foreground, as if it ran here: its output unchanged, its input if wanted, and its
// exit code.
#pragma once

#include <agbox/raw_client.h>

#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "cli/console.h"
#include "cli/interactive_session.h"
#include "cli/interrupt.h"

namespace agbox::cli {

// The exit code of agbox for an exec that has ended. Prints what the code does not say, unless it
// is the end of `shown`, its stderr.
int exec_exit_code(Console& console, const v1::ExecStatus& exec, std::string_view shown = "");

class ForegroundExec {
 public:
  enum class OnInterrupt {
    Cancel,  // Ctrl-C cancels the exec and its child processes
    Leave,   // Ctrl-C leaves it running
  };

  ForegroundExec(Console& console, const sdk::RawClient& client, const Interrupt& interrupt,
                 std::string exec_id, OnInterrupt on_interrupt = OnInterrupt::Cancel,
                 int own_failure = kRuntimeError);

  // Attaches to it, instead of only reading its output.
  void attach(InteractiveSession::Options options);

  // The exit code of agbox, once the exec has ended or the user has left it.
  int exit_code();
  // Afterwards: the user has detached from it.
  bool is_detached() const { return session_ && session_->is_detached(); }
  // Afterwards: the exec keeps running.
  bool keeps_running() const { return keeps_running_; }

 private:
  sdk::Result<void> read_output(const sdk::OutputSinks& sinks);
  void signalled();
  // Runs once, on the first thread that needs it.
  void cancel();
  void pass(std::string_view bytes, int (Console::*to)(std::string_view) const, int& problem);
  int report_left();
  int report_lost(const sdk::Error& error);

  Console& console_;
  const sdk::RawClient& client_;
  const Interrupt& interrupt_;
  std::string exec_id_;
  OnInterrupt on_interrupt_;
  int own_failure_;  // the exit code if agbox fails, not the command
  std::optional<InteractiveSession> session_;
  bool keeps_running_ = false;
  std::once_flag cancelled_once_;
  int stdout_problem_ = 0;
  int stderr_problem_ = 0;
  std::string stderr_tail_;
  std::stop_source abort_;
  std::stop_callback<std::function<void()>> on_signal_;
};

}  // namespace agbox::cli
