// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/sandbox_journal.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

namespace agbox {
namespace {

v1::SandboxHandle new_handle(const std::string& sandbox_id, const v1::CreateSpec& spec,
                             const store::v1::CreatedWith& created_with, WallTime created_at) {
  v1::SandboxHandle handle;
  handle.set_sandbox_id(sandbox_id);
  handle.set_image(spec.image());
  *handle.mutable_labels() = spec.labels();
  *handle.mutable_companion_containers() = spec.companion_containers();
  *handle.mutable_mounts() = spec.mounts();
  *handle.mutable_copies() = spec.copies();
  // Up to 2 MiB, and the handle of a deleted sandbox stays in memory.
  for (v1::CopySpec& copy : *handle.mutable_copies()) copy.clear_exclude_patterns();
  for (const store::v1::ToolSource& tool : created_with.tools()) {
    *handle.add_builtin_resources() = tool.resource();
  }
  *handle.mutable_ports() = spec.ports();
  if (spec.has_lease_ttl()) *handle.mutable_lease_ttl() = spec.lease_ttl();
  *handle.mutable_warnings() = created_with.warnings();
  *handle.mutable_created_at() = to_timestamp(created_at);
  return handle;
}

// A record of an older daemon has only the wall-clock time.
Moment quiet_since(const SandboxRecord& record) {
  if (record.quiet_since) return *record.quiet_since;
  const WallTime changed_at = record.status.changed_at;
  return {.wall = std::max(changed_at, record.last_exec_ended_at.value_or(changed_at))};
}

bool is_end_of_exec(const v1::SandboxEvent& event) {
  return event.has_exec() && event.exec().exec_state() != v1::EXEC_STATE_RUNNING;
}

// None of its containers should run.
bool is_at_rest(v1::SandboxState state) {
  return state == v1::SANDBOX_STATE_STOPPED || state == v1::SANDBOX_STATE_FAILED ||
         state == v1::SANDBOX_STATE_DELETED;
}

void show_at_rest(v1::CompanionStatus& companion) {
  companion.set_state(v1::COMPANION_STATE_STOPPED);
  companion.clear_health();
}

}  // namespace

google::protobuf::Timestamp to_timestamp(WallTime time) {
  return google::protobuf::util::TimeUtil::NanosecondsToTimestamp(time.time_since_epoch().count());
}

SandboxJournal::SandboxJournal(ActorServices& services, const std::string& sandbox_id,
                               const v1::CreateSpec& spec,
                               const store::v1::CreatedWith& created_with)
    : services_(services),
      created_at_(services.clock.wall_now()),
      status_{.state = v1::SANDBOX_STATE_UNSPECIFIED,
              .changed_at = created_at_,
              .error_code = {},
              .error_message = {}},
      handle_(new_handle(sandbox_id, spec, created_with, created_at_)),
      warnings_of_create_(handle_.warnings_size()),
      feed_(std::make_shared<EventFeed>(sandbox_id, 0)) {}

SandboxJournal::SandboxJournal(ActorServices& services, const SandboxRecord& record,
                               const store::v1::CreatedWith& created_with)
    : services_(services),
      created_at_(record.created_at),
      status_(record.status),
      newest_event_at_(record.newest_event_at),
      quiet_since_(agbox::quiet_since(record)),
      handle_(new_handle(record.sandbox_id, record.spec, created_with, created_at_)),
      warnings_of_create_(handle_.warnings_size()),
      feed_(std::make_shared<EventFeed>(record.sandbox_id, record.newest_sequence)) {
  show(status_, record.newest_sequence);
  services_.all_events.add(handle_);
}

WallTime SandboxJournal::now() {
  newest_event_at_ = std::max(newest_event_at_, services_.clock.wall_now());
  return newest_event_at_;
}

Mutation SandboxJournal::entry(v1::SandboxEvent event) {
  const WallTime time = now();
  event.set_sandbox_id(sandbox_id());
  *event.mutable_occurred_at() = to_timestamp(time);
  const bool changes_state = event.sandbox_state() != v1::SANDBOX_STATE_UNSPECIFIED &&
                             event.sandbox_state() != status_.state;
  if (changes_state || is_end_of_exec(event)) {
    quiet_since_ = services_.clock.now();
    is_quiet_since_stored_ = false;
  }
  if (event.sandbox_state() == v1::SANDBOX_STATE_UNSPECIFIED) {
    event.set_sandbox_state(status_.state);
  } else if (changes_state) {
    status_ = {.state = event.sandbox_state(),
               .changed_at = time,
               .error_code = event.sandbox_phase().error_code(),
               .error_message = event.sandbox_phase().error_message()};
  }
  return change::AppendEvent{std::move(event)};
}

SandboxJournal::OnDisk SandboxJournal::append(std::vector<Mutation> mutations, Urgency urgency,
                                              Show show) {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (!std::exchange(is_quiet_since_stored_, true)) {
    mutations.emplace_back(change::SetQuietSince{sandbox_id(), quiet_since_});
  }
  OnDisk on_disk;
  auto committed = [this, urgency, status = status_, show = std::move(show),
                    on_disk](Result<Committed> result) {
    if (result) {
      const bool has_events = !result->events.empty();
      if (has_events) this->show(status, result->events.back().event.sequence());
      if (show) show();
      if (has_events) publish(share(std::move(result->events)));
    } else if (urgency == Urgency::GoesOn) {
      // Clients keep seeing the old state until the next start of the daemon decides again.
      services_.log.error("the store refused a change of a sandbox",
                          {{"sandbox_id", sandbox_id()}, {"error", result.error().message()}});
    }
    on_disk.set(result ? Result<>{} : std::unexpected(result.error()));
  };
  give_to_store({.mutations = std::move(mutations), .urgency = urgency}, std::move(committed));
  return on_disk;
}

void SandboxJournal::publish(const PublishedEvents& events) {
  feed_->publish(events);
  services_.all_events.publish(handle_, events);
}

std::function<void()> SandboxJournal::hold() {
  auto hold = std::make_shared<Waiting>();
  waiting_.push_back(hold);
  return [this, weak = std::weak_ptr(hold)] {
    const auto held = weak.lock();
    if (!held) return;
    held->is_over = true;
    give_waiting_to_store();
  };
}

void SandboxJournal::give_to_store(Change change, OnCommitted on_committed) {
  if (waiting_.empty()) {
    return services_.store.append(std::move(change), std::move(on_committed));
  }
  waiting_.push_back(std::make_shared<Waiting>(
      Waiting{.change = std::move(change), .on_committed = std::move(on_committed)}));
}

void SandboxJournal::give_waiting_to_store() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  while (!waiting_.empty() && (waiting_.front()->change || waiting_.front()->is_over)) {
    const auto next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next->change)
      services_.store.append(std::move(*next->change), std::move(next->on_committed));
  }
}

SandboxJournal::OnDisk SandboxJournal::refuse(Error why) {
  OnDisk refused;
  // New work is refused at once if the disk is full.
  give_to_store({.mutations = {}, .urgency = Urgency::NewWork},
                [refused, why = std::move(why)](const Result<Committed>&) {
                  refused.set(std::unexpected(why));
                });
  return refused;
}

void SandboxJournal::show_isolation(const std::string& problem, bool is_paused,
                                    const std::string& unverified) {
  handle_.set_isolation_problem(problem);
  handle_.set_paused(is_paused);
  handle_.set_isolation_unverified(unverified);
}

void SandboxJournal::show_restarts(std::uint64_t count, const std::string& last_exit) {
  handle_.set_restart_count(count);
  handle_.set_last_exit(last_exit);
}

void SandboxJournal::show_companion(const v1::CompanionStatus& status) {
  const auto found = std::ranges::find(*handle_.mutable_companions(), status.name(),
                                       [](const v1::CompanionStatus& one) { return one.name(); });
  v1::CompanionStatus& shown =
      found == handle_.mutable_companions()->end() ? *handle_.add_companions() : *found;
  shown = status;
  if (is_at_rest(handle_.state())) show_at_rest(shown);
}

void SandboxJournal::forget_companion_specs() {
  for (v1::CompanionContainerSpec& spec : *handle_.mutable_companion_containers()) {
    v1::CompanionContainerSpec kept;
    kept.set_name(spec.name());
    kept.set_image(spec.image());
    spec = std::move(kept);
  }
}

void SandboxJournal::show_companion_health(const std::string& name, const std::string& health) {
  for (v1::CompanionStatus& shown : *handle_.mutable_companions()) {
    if (shown.name() == name) shown.set_health(health);
  }
}

void SandboxJournal::show_warnings(
    const google::protobuf::RepeatedPtrField<std::string>& of_container) {
  auto& shown = *handle_.mutable_warnings();
  shown.DeleteSubrange(warnings_of_create_, shown.size() - warnings_of_create_);
  shown.MergeFrom(of_container);
}

void SandboxJournal::show(const SandboxStatus& status, std::uint64_t newest_sequence) {
  handle_.set_state(status.state);
  handle_.set_error_code(status.error_code);
  handle_.set_error_message(status.error_message);
  *handle_.mutable_state_changed_at() = to_timestamp(status.changed_at);
  handle_.set_last_event_sequence(newest_sequence);
  if (!is_at_rest(status.state)) return;
  for (v1::CompanionStatus& companion : *handle_.mutable_companions()) show_at_rest(companion);
}

}  // namespace agbox
