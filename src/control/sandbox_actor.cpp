// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox_actor.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "async/cancellation.h"
#include "base/check.h"
#include "control/commit.h"
#include "control/materialize.h"
#include "control/teardown.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

constexpr auto kFirstBackOff = 100ms;
constexpr auto kLongestBackOff = std::chrono::milliseconds(30s);
// A create that takes the daemon down with it is not tried for ever.
constexpr std::uint32_t kMostAttempts = 3;
constexpr auto kCleanUpLimit = 30s;
constexpr const char* kMaterialize = "materialize";  // the phase

google::protobuf::Timestamp to_timestamp(WallTime time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(time.time_since_epoch().count());
}

Operation stored_operation(Lifecycle state, bool cleans_up) {
  switch (state) {
    case Lifecycle::Creating:
      return Operation::Creating;
    case Lifecycle::Resuming:
      return Operation::Resuming;
    case Lifecycle::Stopping:
      return Operation::Stopping;
    case Lifecycle::Deleting:
      return Operation::Deleting;
    case Lifecycle::Failed:
      return cleans_up ? Operation::CleaningUp : Operation::None;
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Deleted:
      break;
  }
  return Operation::None;
}

Lifecycle life_of(const SandboxRecord& record) {
  switch (record.operation.operation) {
    case Operation::Creating:
      return Lifecycle::Creating;
    case Operation::Resuming:
      return Lifecycle::Resuming;
    case Operation::Stopping:
      return Lifecycle::Stopping;
    case Operation::Deleting:
      return Lifecycle::Deleting;
    case Operation::CleaningUp:
      return Lifecycle::Failed;
    case Operation::None:
      break;
  }
  switch (record.status.state) {
    case v1::SANDBOX_STATE_READY:
      return Lifecycle::Ready;
    case v1::SANDBOX_STATE_STOPPED:
      return Lifecycle::Stopped;
    case v1::SANDBOX_STATE_DELETED:
      return Lifecycle::Deleted;
    default:
      return Lifecycle::Failed;
  }
}

// The code that clients know for a failure of this operation.
const char* failure_code(Lifecycle state) {
  switch (state) {
    case Lifecycle::Resuming:
      return "SANDBOX_RESUME_FAILED";
    case Lifecycle::Stopping:
      return "SANDBOX_STOP_FAILED";
    case Lifecycle::Deleting:
      return "SANDBOX_DELETE_FAILED";
    case Lifecycle::Creating:
    case Lifecycle::Ready:
    case Lifecycle::Stopped:
    case Lifecycle::Failed:
    case Lifecycle::Deleted:
      break;
  }
  return "SANDBOX_CREATE_FAILED";
}

// What a later daemon needs to know of the sandbox's objects, as the store keeps it.
std::vector<Mutation> stored(const SandboxFacts& facts) {
  std::vector<Mutation> mutations{change::SetSubnet{facts.sandbox_id, facts.subnet},
                                  change::ForgetContainers{facts.sandbox_id}};
  for (const auto& [name, container] : facts.containers) {
    mutations.emplace_back(change::PutContainer{facts.sandbox_id, name, container});
  }
  return mutations;
}

// Whether the engine said no, as against not having been reached.
bool is_definite(const Error& error) {
  return error.reason() != Reason::EngineUnavailable && error.reason() != Reason::Cancelled;
}

v1::SandboxHandle new_handle(const std::string& sandbox_id, const v1::CreateSpec& spec,
                             WallTime created_at) {
  v1::SandboxHandle handle;
  handle.set_sandbox_id(sandbox_id);
  handle.set_image(spec.image());
  *handle.mutable_labels() = spec.labels();
  *handle.mutable_companion_containers() = spec.companion_containers();
  *handle.mutable_created_at() = to_timestamp(created_at);
  return handle;
}

void show(v1::SandboxHandle& handle, const SandboxStatus& status, std::uint64_t newest_sequence) {
  handle.set_state(status.state);
  handle.set_error_code(status.error_code);
  handle.set_error_message(status.error_message);
  *handle.mutable_state_changed_at() = to_timestamp(status.changed_at);
  handle.set_last_event_sequence(newest_sequence);
}

}  // namespace

SandboxActor::SandboxActor(Services& services, OnDeleted on_deleted, std::string sandbox_id,
                           SandboxSpec spec, store::v1::CreatedWith created_with)
    : services_(services),
      on_deleted_(std::move(on_deleted)),
      log_(services.log.with({"sandbox_id", sandbox_id})),
      facts_{.sandbox_id = std::move(sandbox_id),
             .spec = std::move(spec),
             .created_with = std::move(created_with),
             .subnet = std::nullopt,
             .containers = {}},
      created_at_(services.clock.wall_now()),
      status_{.state = v1::SANDBOX_STATE_UNSPECIFIED,
              .changed_at = created_at_,
              .error_code = {},
              .error_message = {}},
      attempts_(1),
      handle_(new_handle(facts_.sandbox_id, facts_.spec.create_spec, created_at_)),
      feed_(std::make_shared<EventFeed>(facts_.sandbox_id, 0)),
      retry_timer_(services.loop.io()),
      back_off_(kFirstBackOff, kLongestBackOff) {}

SandboxActor::SandboxActor(Services& services, OnDeleted on_deleted, SandboxRecord record,
                           SandboxSpec spec)
    : services_(services),
      on_deleted_(std::move(on_deleted)),
      log_(services.log.with({"sandbox_id", record.sandbox_id})),
      facts_{.sandbox_id = record.sandbox_id,
             .spec = std::move(spec),
             .created_with = std::move(record.created_with),
             .subnet = std::move(record.subnet),
             .containers = std::move(record.containers)},
      created_at_(record.created_at),
      life_{.state = life_of(record), .reason = record.operation.reason},
      status_(record.status),
      cleans_up_(record.operation.operation == Operation::CleaningUp),
      attempts_(record.operation.attempts),
      newest_event_at_(record.newest_event_at),
      handle_(new_handle(facts_.sandbox_id, facts_.spec.create_spec, created_at_)),
      feed_(std::make_shared<EventFeed>(facts_.sandbox_id, record.newest_sequence)),
      retry_timer_(services.loop.io()),
      back_off_(kFirstBackOff, kLongestBackOff) {
  show(handle_, status_, record.newest_sequence);
  if (is_deleted()) forget_spec();
}

void SandboxActor::accept(Reply reply) {
  log_.info("sandbox create accepted", {{"operation", "create"}});
  // It begins as soon as it is accepted, so both are one change.
  has_prepared_ = true;
  record({event::Accepted{}, event::Preparing{kMaterialize}}, {}, Urgency::NewWork,
         std::move(reply));
}

void SandboxActor::recover() {
  if (facts_.subnet) services_.subnets.take(*facts_.subnet);
  if (life_.state == Lifecycle::Creating) {
    if (++attempts_ > kMostAttempts) {
      cleans_up_ = true;
      decide_and_record(
          command::Refuse{{.code = failure_code(life_.state),
                           .message = "the daemon ended " + std::to_string(kMostAttempts) +
                                      " times while it created this sandbox; look into its log"}});
    }
  }
  if (life_.state == Lifecycle::Ready) adopt_guest();
  work();
}

// The guest of a sandbox that was ready comes back by itself once somebody listens.
void SandboxActor::adopt_guest() {
  const store::v1::Container& primary = facts_.containers[""];
  auto adopted = services_.guests.adopt(
      id(), {.device = primary.guest_folder_device(), .inode = primary.guest_folder_inode()});
  if (adopted) {
    guestlink::Expectation expected;
    expected.secret = primary.secret();
    expected.uid = facts_.created_with.host_uid();
    expected.gid = facts_.created_with.host_gid();
    adopted = services_.guests.expect(id(), std::move(expected));
  }
  if (!adopted) log_.warn("guest cannot come back", {{"error", adopted.error().message()}});
}

void SandboxActor::remove(std::string reason, Reply reply) {
  const auto decision = decide(id(), life_, command::Delete{std::move(reason)});
  AGBOX_CHECK(decision.has_value(), "delete is legal in every state");
  if (!decision->empty()) {
    attempts_ = 1;
    log_.info("sandbox delete requested", {{"operation", "delete"}});
  }
  record(*decision, {}, Urgency::GoesOn, std::move(reply));
  work();
}

WallTime SandboxActor::next_event_time() {
  newest_event_at_ = std::max(newest_event_at_, services_.clock.wall_now());
  return newest_event_at_;
}

void SandboxActor::record(const std::vector<LifecycleEvent>& events, std::vector<Mutation> also,
                          Urgency urgency, Reply reply) {
  const bool is_new = status_.state == v1::SANDBOX_STATE_UNSPECIFIED;
  std::vector<Mutation> mutations;
  for (const LifecycleEvent& event : events) {
    life_ = apply(std::move(life_), event);
    v1::SandboxEvent message = to_message(id(), life_, event);
    const WallTime now = next_event_time();
    *message.mutable_occurred_at() = to_timestamp(now);
    if (message.sandbox_state() != status_.state) {
      status_ = {.state = message.sandbox_state(),
                 .changed_at = now,
                 .error_code = message.sandbox_phase().error_code(),
                 .error_message = message.sandbox_phase().error_message()};
    }
    mutations.emplace_back(change::AppendEvent{std::move(message)});
  }
  const OperationUnderWay operation{.operation = stored_operation(life_.state, cleans_up_),
                                    .reason = life_.reason,
                                    .attempts = attempts_};
  if (is_new) {
    mutations.insert(mutations.begin(), change::CreateSandbox{.sandbox_id = id(),
                                                              .created_at = created_at_,
                                                              .status = status_,
                                                              .operation = operation,
                                                              .spec = facts_.spec.create_spec,
                                                              .created_with = facts_.created_with});
  } else if (!mutations.empty()) {
    mutations.emplace_back(change::SetStatus{id(), status_});
    mutations.emplace_back(change::SetOperation{id(), operation});
  }
  std::ranges::move(also, std::back_inserter(mutations));
  // Actors are erased only after their last commit, so `this` lives.
  auto committed = [this, status = status_, reply = std::move(reply)](Result<Committed> result) {
    if (result) publish(status, std::move(*result));
    if (!reply) return;
    reply(result ? Result<>{} : std::unexpected(result.error()));
  };
  // Without a mutation it is only a place in the queue: the reply comes after what was told before.
  services_.store.append({.mutations = std::move(mutations), .urgency = urgency},
                         std::move(committed));
}

void SandboxActor::publish(const SandboxStatus& status, Committed committed) {
  if (committed.events.empty()) return;
  show(handle_, status, committed.events.back().event.sequence());
  if (is_deleted()) forget_spec();
  feed_->publish(std::move(committed.events));
  if (is_deleted()) on_deleted_(id(), status.changed_at);
}

// A deleted sandbox is kept for its history, for days: what only operations need may be megabytes.
void SandboxActor::forget_spec() {
  facts_.spec = {};
  facts_.created_with.Clear();
}

void SandboxActor::decide_and_record(const LifecycleCommand& command, std::vector<Mutation> also) {
  const auto decision = decide(id(), life_, command);
  AGBOX_CHECK(decision.has_value(), "an operation reports only while it is the current one");
  record(*decision, std::move(also), Urgency::GoesOn, {});
}

std::optional<OperationKind> SandboxActor::wanted_operation() const {
  switch (life_.state) {
    case Lifecycle::Creating:
      return OperationKind::Create;
    case Lifecycle::Deleting:
      return OperationKind::Delete;
    case Lifecycle::Failed:
      return cleans_up_ ? std::optional(OperationKind::CleanUp) : std::nullopt;
    case Lifecycle::Ready:
    case Lifecycle::Resuming:
    case Lifecycle::Stopping:
    case Lifecycle::Stopped:
    case Lifecycle::Deleted:
      break;
  }
  return std::nullopt;
}

void SandboxActor::work() {
  if (services_.is_shutting_down) return;  // the next start goes on with it
  const auto wanted = wanted_operation();
  if (running_) {
    // Never two at once: the old one is asked to end, and its end brings us here again.
    if (running_->kind != wanted) running_->cancel->emit(asio::cancellation_type::terminal);
    return;
  }
  if (!wanted) return;
  if (waits_for_retry_) return end_wait_for_retry();  // which brings us here again
  running_.emplace(Running{.kind = *wanted});
  if (*wanted == OperationKind::Create && !has_prepared_) {
    has_prepared_ = true;
    decide_and_record(command::Prepare{kMaterialize});
  }
  running_->cancel = services_.tasks.spawn("sandbox " + id(), run(*wanted));
}

asio::awaitable<void> SandboxActor::run(OperationKind kind) {
  OperationOutcome outcome{.result = {}, .facts = facts_};
  // Nothing is done before the decision to do it is on disk: a crash could neither go on with it
  // nor count it.
  if (auto decided = co_await commit(services_.store, {}); !decided) {
    outcome.result = std::unexpected(std::move(decided.error()));
    co_return ended(kind, std::move(outcome));
  }
  switch (kind) {
    case OperationKind::Create: {
      // What an interrupted attempt left is not trusted: it starts over from nothing.
      if (attempts_ > 1) outcome.result = co_await teardown(services_, outcome.facts);
      if (outcome.result) {
        auto progress = [this](std::string phase) { report_progress(std::move(phase)); };
        outcome.result = co_await materialize(services_, outcome.facts, std::move(progress));
      }
      if (!outcome.result && is_definite(outcome.result.error()) && !co_await is_cancelled()) {
        outcome.has_cleaned_up =
            (co_await teardown_within(services_, outcome.facts, kCleanUpLimit)).has_value();
      }
      break;
    }
    case OperationKind::CleanUp:
    case OperationKind::Delete:
      outcome.result = co_await teardown(services_, outcome.facts);
      break;
  }
  ended(kind, std::move(outcome));
}

void SandboxActor::ended(OperationKind kind, OperationOutcome outcome) {
  running_.reset();
  facts_ = std::move(outcome.facts);
  if (services_.is_shutting_down) return;
  if (wanted_operation() != kind) return work();
  if (outcome.result) return succeeded(kind);
  const Error& error = outcome.result.error();
  if (!is_definite(error)) {
    log_.warn("operation waits for the engine", {{"error", error.message()}});
    return retry_later();
  }
  failed(kind, error, outcome.has_cleaned_up);
}

void SandboxActor::succeeded(OperationKind kind) {
  back_off_.reset();
  std::vector<Mutation> facts = stored(facts_);
  switch (kind) {
    case OperationKind::Create:
      log_.info("sandbox ready", {{"operation", "create"}});
      return decide_and_record(command::Succeed{}, std::move(facts));
    case OperationKind::Delete:
      log_.info("sandbox deleted", {{"operation", "delete"}});
      facts.emplace_back(change::MarkDeleted{id(), next_event_time()});
      return decide_and_record(command::Succeed{}, std::move(facts));
    case OperationKind::CleanUp:
      cleans_up_ = false;
      facts.emplace_back(change::SetOperation{id(), {}});
      return record({}, std::move(facts), Urgency::GoesOn, {});
  }
}

void SandboxActor::failed(OperationKind kind, const Error& error, bool has_cleaned_up) {
  if (kind == OperationKind::CleanUp) {
    log_.warn("clean-up of a failed create is tried again", {{"error", error.message()}});
    return retry_later();
  }
  log_.warn("sandbox failed", {{"error", error.message()}});
  cleans_up_ = kind == OperationKind::Create && !has_cleaned_up;
  decide_and_record(
      command::Refuse{{.code = failure_code(life_.state), .message = error.message()}},
      stored(facts_));
  work();
}

void SandboxActor::retry_later() {
  waits_for_retry_ = true;
  retry_timer_.expires_after(back_off_.next());
  services_.tasks.spawn("sandbox " + id() + " retry", wait_for_retry());
}

asio::awaitable<void> SandboxActor::wait_for_retry() {
  if (!co_await is_cancelled()) {
    co_await retry_timer_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  waits_for_retry_ = false;
  work();
}

void SandboxActor::end_wait_for_retry() {
  // Not cancel(): the wait may not have begun yet.
  retry_timer_.expires_at(asio::steady_timer::time_point::min());
}

void SandboxActor::engine_is_back() {
  back_off_.reset();
  if (waits_for_retry_) end_wait_for_retry();
}

void SandboxActor::report_progress(std::string phase) {
  if (life_.state == Lifecycle::Creating) decide_and_record(command::Prepare{std::move(phase)});
}

}  // namespace agbox
