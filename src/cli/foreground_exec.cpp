// SPDX-License-Identifier: Apache-2.0
#include "cli/foreground_exec.h"

#include <agbox/exec_run.h>

#include <utility>

#include "cli/daemon_client.h"
#include "cli/format/exec_text.h"

namespace agbox::cli {

namespace {

// A daemon that has not accepted a cancellation by then is not waited for.
constexpr sdk::CallOptions kCancelTimeout{.timeout = std::chrono::milliseconds(1000)};

// More than the longest reason that the daemon reports.
constexpr std::size_t kTailBytes = 4096;

}  // namespace

int exec_exit_code(Console& console, const v1::ExecStatus& exec, std::string_view shown) {
  if (exec.state() == v1::EXEC_STATE_FINISHED) return kSuccess;
  const bool has_code = exec.state() == v1::EXEC_STATE_FAILED && exec.exit_code() != 0;
  // No message if it would only repeat the exit code, or the reason why the command could not
  // start, which is the last line of its stderr.
  const bool is_known = exec.error() == "exit code " + std::to_string(exec.exit_code()) ||
                        shown.ends_with(exec.error() + "\n");
  if (has_code && is_known) return exec.exit_code();
  const std::string why = exec.error().empty() ? "" : ": " + exec.error();
  console.error("exec " + exec.exec_id() + " ended as " + state_text(exec.state()) + why);
  if (exec.error_code() == "TIMEOUT") return kTimedOut;
  return has_code ? exec.exit_code() : kNoExitCode;
}

ForegroundExec::ForegroundExec(Console& console, const sdk::RawClient& client,
                               const Interrupt& interrupt, std::string exec_id,
                               OnInterrupt on_interrupt, int own_failure)
    : console_(console),
      client_(client),
      interrupt_(interrupt),
      exec_id_(std::move(exec_id)),
      on_interrupt_(on_interrupt),
      own_failure_(own_failure),
      on_signal_(interrupt.token(), [this] { signalled(); }) {}

void ForegroundExec::attach(InteractiveSession::Options options) {
  session_.emplace(console_, client_, exec_id_, std::move(options));
}

void ForegroundExec::signalled() {
  if (on_interrupt_ == OnInterrupt::Leave) {
    abort_.request_stop();
    return;
  }
  if (console_.is_terminal()) console_.error("\nCancelling; Ctrl-C again exits without waiting.");
  cancel();
}

void ForegroundExec::cancel() {
  std::call_once(cancelled_once_, [this] {
    v1::CancelExecRequest request;
    request.set_exec_id(exec_id_);
    const auto accepted = client_.cancel_exec(request, kCancelTimeout);
    // It ended concurrently: read the rest of its output and return its exit code.
    if (accepted || accepted.error().kind == sdk::ErrorKind::ExecAlreadyTerminal) return;
    fail_call(console_, "cancel exec", accepted.error());
    abort_.request_stop();
  });
}

// A closed output cancels the command, as SIGPIPE would locally. The rest of its output is read and
// dropped, because its end is still awaited. A client that only came to look leaves it running.
void ForegroundExec::pass(std::string_view bytes, int (Console::*to)(std::string_view) const,
                          int& problem) {
  if (problem != 0) return;
  problem = (console_.*to)(bytes);
  if (problem == 0) return;
  if (on_interrupt_ == OnInterrupt::Leave) {
    abort_.request_stop();
  } else {
    cancel();
  }
}

int ForegroundExec::exit_code() {
  const sdk::OutputSinks sinks{
      .on_stdout =
          [this](std::string_view bytes) { pass(bytes, &Console::write_stdout, stdout_problem_); },
      .on_stderr =
          [this](std::string_view bytes) {
            pass(bytes, &Console::write_stderr, stderr_problem_);
            stderr_tail_ += bytes;
            if (stderr_tail_.size() > kTailBytes) {
              stderr_tail_.erase(0, stderr_tail_.size() - kTailBytes);
            }
          },
  };
  const sdk::FollowOptions follow{.stop = abort_.get_token()};
  if (auto read = read_output(sinks); !read) {
    const bool is_left = read.error().kind == sdk::ErrorKind::Cancelled &&
                         (is_detached() || (on_interrupt_ == OnInterrupt::Leave &&
                                            interrupt_.token().stop_requested()));
    return is_left ? report_left() : report_lost(read.error());
  }
  const auto exec = sdk::wait_for_exec(client_, exec_id_, follow);
  if (!exec) return report_lost(exec.error());
  if (const std::string lost = truncation_text(*exec); !lost.empty()) console_.error(lost);
  if (stdout_problem_ != 0) console_.report_write_problem(stdout_problem_);
  if (stdout_problem_ != 0 || stderr_problem_ != 0) return own_failure_;
  // Judge by the state: the response to the cancellation may arrive after the exec has ended.
  const bool was_interrupted = interrupt_.token().stop_requested();
  if (was_interrupted && exec->state() == v1::EXEC_STATE_CANCELLED) return interrupt_.exit_code();
  return exec_exit_code(console_, *exec, stderr_tail_);
}

sdk::Result<void> ForegroundExec::read_output(const sdk::OutputSinks& sinks) {
  if (!session_) {
    return sdk::read_output(client_, exec_id_, sinks, {.stop = abort_.get_token()});
  }
  const auto ended = session_->run(sinks, abort_.get_token());
  if (!ended) return std::unexpected(ended.error());
  return {};
}

int ForegroundExec::report_left() {
  keeps_running_ = true;
  console_.error("Detached: exec " + exec_id_ +
                 " keeps running.\n  Attach again:       agbox attach " + exec_id_ +
                 "\n  Cancel exec:        agbox exec cancel " + exec_id_);
  return is_detached() ? kSuccess : interrupt_.exit_code();
}

int ForegroundExec::report_lost(const sdk::Error& error) {
  keeps_running_ = true;
  if (error.kind != sdk::ErrorKind::Cancelled) fail_call(console_, "read exec output", error);
  console_.error("Exec " + exec_id_ + " keeps running.\n  Show exec:          agbox exec get " +
                 exec_id_ + "\n  Cancel exec:        agbox exec cancel " + exec_id_);
  return own_failure_;
}

}  // namespace agbox::cli
