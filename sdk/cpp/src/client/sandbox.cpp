// SPDX-License-Identifier: Apache-2.0
#include <agbox/sandbox.h>
#include <agbox/sandbox_hold.h>

#include <agbox/container_log_follower.h>
#include <agbox/event_follower.h>
#include <agbox/exec_run.h>
#include <agbox/sandbox_wait.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "client_core.h"
#include "conversions.h"
#include "exec_process.h"
#include "wait_stop.h"

namespace agbox::sdk {

namespace {

class SandboxEvents final : public Sequence<Event>::Source {
 public:
  SandboxEvents(std::shared_ptr<const ClientCore> core, const std::string& sandbox_id,
                const EventOptions& options)
      : core_(std::move(core)),
        follower_(core_->raw(), sandbox_id, options.after, core_->follow(options.stop)) {}

  Result<std::optional<Event>> next() override {
    const auto event = follower_.next();
    if (!event) return std::unexpected(event.error());
    return from_message(*event);
  }

 private:
  std::shared_ptr<const ClientCore> core_;  // outlives the follower
  EventFollower follower_;
};

class ContainerLog final : public Sequence<LogPiece>::Source {
 public:
  ContainerLog(std::shared_ptr<const ClientCore> core, v1::ReadContainerLogsRequest request,
               const std::stop_token& stop)
      : core_(std::move(core)), follower_(core_->raw(), std::move(request), core_->follow(stop)) {}

  Result<std::optional<LogPiece>> next() override {
    auto piece = follower_.next();
    if (!piece) return std::unexpected(piece.error());
    if (!*piece) return std::nullopt;
    LogPiece printed{.stream = static_cast<OutputStream>((*piece)->stream()),
                     .bytes = std::move(*(*piece)->mutable_data())};
    if ((*piece)->has_time()) printed.time = from_timestamp((*piece)->time());
    return printed;
  }

 private:
  std::shared_ptr<const ClientCore> core_;  // outlives the follower
  ContainerLogFollower follower_;
};

// What of `limits` is left.
class RemainingLimits {
 public:
  explicit RemainingLimits(const WaitLimits& limits)
      : limits_(limits), end_(std::chrono::steady_clock::now() + limits.wait_timeout) {}

  WaitLimits now() const {
    if (limits_.wait_timeout == std::chrono::milliseconds::zero()) return limits_;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
    return {.stop = limits_.stop, .wait_timeout = std::max(left, std::chrono::milliseconds(1))};
  }

 private:
  WaitLimits limits_;
  std::chrono::steady_clock::time_point end_;
};

// A command whose start was not confirmed.
void cancel_if_it_runs(const ClientCore& core, const std::string& exec_id) {
  v1::CancelExecRequest request;
  request.set_exec_id(exec_id);
  // The caller gets the error of the start.
  static_cast<void>(core.raw().cancel_exec(request));
}

void append(std::string& kept, std::string_view bytes, std::size_t most, bool& is_truncated) {
  const std::size_t fits = std::min(bytes.size(), most - std::min(most, kept.size()));
  if (fits < bytes.size()) is_truncated = true;
  kept += bytes.substr(0, fits);
}

}  // namespace

Sandbox::Sandbox(std::shared_ptr<const ClientCore> client, std::string id, bool is_kept)
    : client_(std::move(client)), id_(std::move(id)), is_kept_(is_kept) {}

Sandbox::Sandbox(Sandbox&& other) noexcept
    : client_(std::move(other.client_)),
      id_(std::move(other.id_)),
      is_kept_(std::exchange(other.is_kept_, true)),
      hold_(std::move(other.hold_)) {}

Sandbox& Sandbox::operator=(Sandbox&& other) noexcept {
  if (this == &other) return *this;
  end();
  hold_ = std::move(other.hold_);
  client_ = std::move(other.client_);
  id_ = std::move(other.id_);
  is_kept_ = std::exchange(other.is_kept_, true);
  return *this;
}

Sandbox::~Sandbox() {
  end();
}

void Sandbox::end() {
  if (is_kept_) return;
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id_);
  ReconnectBackoff backoff(client_->raw(), "delete of sandbox " + id_, client_->follow());
  // A destructor has no one to report it to; remove() does.
  static_cast<void>(backoff.retry([&] { return client_->raw().delete_sandbox(request); }));
}

Result<void> Sandbox::hold(const std::stop_token& stop) {
  if (!hold_) hold_ = std::make_unique<SandboxHold>(client_->raw(), id_);
  return hold_->wait_until_held(stop);
}

Result<SandboxInfo> Sandbox::info() const {
  v1::GetSandboxRequest request;
  request.set_sandbox_id(id_);
  const auto response = client_->raw().get_sandbox(request);
  if (!response) return std::unexpected(response.error());
  return from_message(response->sandbox());
}

Result<void> Sandbox::stop(const WaitLimits& limits) const {
  v1::StopSandboxRequest request;
  request.set_sandbox_id(id_);
  const auto accepted = client_->raw().stop_sandbox(request);
  if (!accepted) return std::unexpected(accepted.error());
  return wait_for(SandboxState::Stopped, limits);
}

Result<void> Sandbox::resume(const WaitLimits& limits) const {
  v1::ResumeSandboxRequest request;
  request.set_sandbox_id(id_);
  const auto accepted = client_->raw().resume_sandbox(request);
  if (!accepted) return std::unexpected(accepted.error());
  return wait_for(SandboxState::Ready, limits);
}

Result<void> Sandbox::remove(const WaitLimits& limits) {
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id_);
  const auto accepted = client_->raw().delete_sandbox(request);
  if (!accepted && accepted.error().kind != ErrorKind::SandboxNotFound) {
    return std::unexpected(accepted.error());
  }
  is_kept_ = true;  // there is nothing left to request
  if (!accepted) return {};
  return wait_for(SandboxState::Deleted, limits);
}

Result<void> Sandbox::wait_for(SandboxState state, const WaitLimits& limits) const {
  SandboxGoal goal;
  switch (state) {
    case SandboxState::Ready:
      goal = SandboxGoal::Ready;
      break;
    case SandboxState::Stopped:
      goal = SandboxGoal::Stopped;
      break;
    case SandboxState::Deleted:
      goal = SandboxGoal::Deleted;
      break;
    default:
      return std::unexpected(Error{.kind = ErrorKind::Refused,
                                   .code = StatusCode::InvalidArgument,
                                   .message = "cannot wait for state " + to_string(state) +
                                              ": wait for READY, STOPPED or DELETED",
                                   .metadata = {{"sandbox_id", id_}}});
  }
  const WaitStop stop(limits);
  const auto reached =
      wait_for_sandbox(client_->raw(), id_, goal, {.follow = client_->follow(stop.token())});
  if (reached) return {};
  return std::unexpected(
      stop.explain(reached.error(), "sandbox " + id_ + " to be " + to_string(state)));
}

Result<Process> Sandbox::start(const Command& command, const std::stop_token& stop) const {
  const auto exec_id = start_exec(client_->raw(), to_request(id_, command), client_->follow(stop));
  if (!exec_id) {
    const ErrorKind kind = exec_id.error().kind;
    const bool may_run = kind == ErrorKind::Timeout || kind == ErrorKind::Cancelled;
    if (may_run && command.exec_id.empty()) cancel_if_it_runs(*client_, exec_id.error().exec_id());
    return std::unexpected(exec_id.error());
  }
  const bool takes_input = command.takes_input || command.input || command.terminal;
  return Process(std::make_unique<Process::Session>(client_, *exec_id,
                                                    AttachOptions{.takes_input = takes_input}));
}

Result<Process> Sandbox::start(const std::vector<std::string>& args,
                               const std::stop_token& stop) const {
  return start(Command{.args = args}, stop);
}

Result<CommandResult> Sandbox::run(const Command& command, const WaitLimits& limits) const {
  const RemainingLimits remaining(limits);
  auto process = start(command, limits.stop);
  if (!process) return std::unexpected(process.error());
  // Written while the output is read, so that neither waits for the other.
  std::jthread writer;
  if (command.input) {
    writer = std::jthread([&](const std::stop_token& stop) {
      // A command need not read all of its input.
      if (process->write(*command.input, stop)) process->end_input();
    });
  }
  CommandResult printed;
  while (true) {
    const auto chunk = process->next(remaining.now());
    if (!chunk) return std::unexpected(chunk.error());
    if (!*chunk) break;
    std::string& kept = (*chunk)->stream == OutputStream::Stderr ? printed.err : printed.out;
    append(kept, (*chunk)->bytes, command.max_output, printed.is_truncated);
  }
  auto result = process->wait();
  if (!result) return result;
  result->out = std::move(printed.out);
  result->err = std::move(printed.err);
  result->is_truncated = result->is_truncated || printed.is_truncated;
  return result;
}

Result<CommandResult> Sandbox::run(const std::vector<std::string>& args,
                                   const WaitLimits& limits) const {
  return run(Command{.args = args}, limits);
}

Result<std::vector<ExecInfo>> Sandbox::execs() const {
  v1::ListExecsRequest request;
  request.set_sandbox_id(id_);
  std::vector<ExecInfo> found;
  do {
    const auto page = client_->raw().list_execs(request);
    if (!page) return std::unexpected(page.error());
    for (const v1::ExecStatus& exec : page->execs()) found.push_back(from_message(exec));
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return found;
}

Sequence<Event> Sandbox::events(const EventOptions& options) const {
  return Sequence<Event>(std::make_unique<SandboxEvents>(client_, id_, options));
}

Sequence<LogPiece> Sandbox::logs(const LogOptions& options) const {
  v1::ReadContainerLogsRequest request;
  request.set_sandbox_id(id_);
  request.set_container(options.container);
  request.set_follow(options.follow);
  if (options.since) *request.mutable_since() = to_timestamp(*options.since);
  if (options.tail) request.set_tail(*options.tail);
  return Sequence<LogPiece>(
      std::make_unique<ContainerLog>(client_, std::move(request), options.stop));
}

Result<SandboxStats> Sandbox::stats() const {
  v1::GetStatsRequest request;
  request.set_sandbox_id(id_);
  const auto response = client_->raw().get_stats(request);
  if (!response) return std::unexpected(response.error());
  return from_message(response->stats());
}

}  // namespace agbox::sdk
