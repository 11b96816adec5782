// SPDX-License-Identifier: Apache-2.0
#include "cli/own_sandbox.h"

#include <agbox/sandbox_wait.h>

#include <chrono>
#include <utility>

#include "base/uuid.h"
#include "cli/daemon_client.h"
#include "cli/daemon_control.h"
#include "cli/format/phase_report.h"
#include "cli/image_remedy.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

using namespace std::chrono_literals;

// A daemon that is restarted is back by then.
constexpr auto kDaemonRestart = 10s;
// How long the sandbox outlives a client that was killed. A client that is alive reconnects to a
// restarted daemon within two seconds, and the time of the restart does not count.
constexpr auto kLease = 10s;
constexpr sdk::CallOptions kDeleteTimeout{.timeout = 10s};

bool is_not_running(const sdk::Error& error) {
  return error.socket && (error.socket->problem == sdk::SocketProblem::Missing ||
                          error.socket->problem == sdk::SocketProblem::NotListening);
}

}  // namespace

OwnSandbox::OwnSandbox(Console& console, const sdk::RawClient& client, const Clock& clock,
                       const Interrupt& interrupt, Options options)
    : console_(console),
      client_(client),
      clock_(clock),
      interrupt_(interrupt),
      options_(std::move(options)) {}

void OwnSandbox::end_step(const char* step) const {
  if (options_.on_step) options_.on_step(step);
}

std::optional<int> OwnSandbox::create(v1::CreateSandboxRequest request) {
  const bool is_own_id = request.sandbox_id().empty();
  if (is_own_id) request.set_sandbox_id(random_uuid());
  id_ = request.sandbox_id();
  has_lease_ = options_.has_lease;
  if (has_lease_) {
    request.mutable_create_spec()->mutable_lease_ttl()->set_seconds(kLease.count());
  }
  const auto create = [&] {
    const WaitReport waiting(console_, clock_, "Waiting for agboxd to accept sandbox " + id_);
    return client_.create_sandbox(request, kNoTimeout);
  };
  auto created = create();
  if (!created && options_.starts_daemon && is_not_running(created.error()) &&
      start_daemon_on_first_use(console_)) {
    client_.wait_until_reachable(kDaemonRestart);  // its channel still waits before it tries again
    end_step("daemon");
    created = create();
  }
  end_step("create");
  if (created) {
    exists_ = true;
    accepted_ = std::move(*created->mutable_sandbox());
    has_lease_ = accepted_.has_lease_ttl();
    if (has_lease_) hold_.emplace(client_, id_);
    return std::nullopt;
  }
  fail_call(console_, "create sandbox", created.error());
  const auto& socket = created.error().socket;
  const bool is_unknown = socket && socket->problem == sdk::SocketProblem::ConnectionLost;
  // Nobody else has an ID that was generated here.
  exists_ = is_unknown && is_own_id;
  if (is_unknown && !is_own_id) {
    console_.error("The sandbox may exist.\n  Show sandbox:       agbox sandbox get " + id_);
  }
  return options_.failure_code;
}

std::optional<int> OwnSandbox::wait_until_ready() {
  sdk::Result<void> ready;
  {
    PhaseReport phases(console_, clock_, "Waiting for sandbox " + id_ + " to be ready");
    ready = sdk::wait_for_sandbox(
        client_, id_, sdk::SandboxGoal::Ready,
        {.follow = {.stop = interrupt_.token()},
         .on_event = [&phases](const v1::SandboxEvent& event) { phases.show(event); },
         .baseline = accepted_});
  }
  end_step("ready");
  if (ready) return wait_until_held();
  if (ready.error().kind == sdk::ErrorKind::Cancelled) return interrupt_.exit_code();
  if (ready.error().kind == sdk::ErrorKind::SandboxFailed) {
    console_.error(ready.error().message + image_remedy(ready.error().message));
  } else {
    fail_call(console_, "wait for sandbox ready", ready.error());
  }
  return options_.failure_code;
}

// The hold began with the create, so that it is usually confirmed by now.
std::optional<int> OwnSandbox::wait_until_held() {
  if (!hold_) return std::nullopt;
  const WaitReport waiting(console_, clock_, "Waiting for agboxd to hold sandbox " + id_);
  const auto held = hold_->wait_until_held(interrupt_.token());
  if (held) return std::nullopt;
  if (held.error().kind == sdk::ErrorKind::Cancelled) return interrupt_.exit_code();
  fail_call(console_, "hold sandbox", held.error());
  return options_.failure_code;
}

bool OwnSandbox::request_deletion() {
  v1::DeleteSandboxRequest request;
  request.set_sandbox_id(id_);
  auto accepted = client_.delete_sandbox(request, kDeleteTimeout);
  if (!accepted && accepted.error().kind == sdk::ErrorKind::Unreachable) {
    client_.wait_until_reachable(kDaemonRestart);
    accepted = client_.delete_sandbox(request, kDeleteTimeout);
  }
  end_step("delete");
  if (accepted || accepted.error().kind == sdk::ErrorKind::SandboxNotFound) return true;
  fail_call(console_, "delete sandbox", accepted.error());
  console_.error(has_lease_ ? "  agboxd deletes it by itself in about " +
                                  std::to_string(kLease.count()) + "s, or when it runs again."
                            : "  Delete sandbox:     agbox rm " + id_);
  return false;
}

}  // namespace agbox::cli
