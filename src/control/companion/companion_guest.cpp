// SPDX-License-Identifier: Apache-2.0
#include "control/companion/companion_guest.h"

#include <chrono>
#include <utility>

#include "async/cancellation.h"
#include "control/exec/sandbox_execs.h"
#include "control/sandbox/operations/step.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// A guest connects within milliseconds; only a container that is starved takes longer.
constexpr auto kJoinLimit = 20s;
// After a lost connection or a restart of the daemon.
constexpr auto kReturnLimit = 10s;
// Of a cancelled exec: SIGKILL comes after 2 s. Only a container that is starved takes longer.
constexpr auto kEndLimit = 20s;

}  // namespace

CompanionGuest::CompanionGuest(ActorServices& services, Sandbox sandbox, CompanionFacts& facts,
                               Logger log)
    : services_(services),
      sandbox_(std::move(sandbox)),
      name_(facts.name()),
      facts_(&facts),
      log_(log.with({"companion", name_})),
      place_(services.place.open_companion(facts.sandbox_id, name_, *this)),
      changed_(services.loop.io().get_executor()) {}

CompanionGuest::~CompanionGuest() = default;

SandboxFacts CompanionGuest::facts_for_place() const {
  SandboxFacts facts;
  facts.sandbox_id = facts_->sandbox_id;
  facts.created_with = sandbox_.facts.created_with;
  facts.created_with.clear_mounts();
  facts.created_with.clear_copies();
  facts.created_with.clear_tools();
  facts.created_with.clear_gpu_gids();
  facts.containers[""] = facts_->container;
  return facts;
}

asio::awaitable<OperationResult<Attachments>> CompanionGuest::prepare() {
  SandboxFacts facts = facts_for_place();
  AGBOX_CO_TRY(attachments, co_await step("companion.guest_directory", place_->prepare(facts)));
  const store::v1::Container& seen = facts.containers[""];
  facts_->container.set_guest_folder_device(seen.guest_folder_device());
  facts_->container.set_guest_folder_inode(seen.guest_folder_inode());
  co_return attachments;
}

// --- its life ---

void CompanionGuest::summon() {
  AGBOX_ON_CONTROL_THREAD(services_.loop);
  if (is_busy_ || has_joined_ || !sandbox_.is_supervised()) return;
  is_busy_ = true;
  sandbox_.spawn(join());
}

void CompanionGuest::resume() {
  if (is_busy_) return;
  if (has_joined_) {
    if (!place_->is_connected()) guest_lost("");
  } else if (may_have_execs() && sandbox_.execs.has_any_of(*this)) {
    has_joined_ = true;
    is_busy_ = true;
    sandbox_.spawn(reconnect());
  } else if (sandbox_.execs.has_any_of(*this)) {
    summon();
  }
}

asio::awaitable<void> CompanionGuest::join() {
  auto joined = co_await begin();
  is_busy_ = false;
  if (co_await is_cancelled()) {
    place_->rest();
    co_return;
  }
  if (!joined) {
    place_->rest();
    log_.warn("companion runs no execs", {{"error", joined.error().message()}});
    sandbox_.execs.end_unsent_of(
        *this, unstarted_outcome("container " + name_ +
                                 " of the sandbox runs no command: " + joined.error().message()));
    co_return;
  }
  has_joined_ = true;
  log_.info("guest of a companion is ready", {{"pid", joined->process.pid}});
  sandbox_.execs.guest_connected(*joined, this);
}

asio::awaitable<OperationResult<GuestHello>> CompanionGuest::begin() {
  AGBOX_CO_TRY_VOID(co_await step("companion.guest_adopt", place_->adopt(facts_for_place())));
  AGBOX_CO_TRY(engine_pid, co_await step("companion.guest_start",
                                         services_.engine.start_companion_guest(*facts_)));
  AGBOX_CO_TRY_VOID(place_->expect(facts_for_place(), engine_pid));
  const auto limit = std::chrono::steady_clock::now() + kJoinLimit;
  AGBOX_CO_TRY(hello, co_await step("companion.guest_hello", place_->hello(limit)));
  if (!hello.failure.empty()) co_return refuse(hello.failure);
  const std::string secret = place_->new_secret();
  AGBOX_CO_TRY_VOID(place_->go({.secret = secret,
                                .entrypoint = {},
                                .command = {},
                                .working_directory = "/",
                                .entrypoint_limit = kJoinLimit}));
  AGBOX_CO_TRY(started, co_await step("companion.guest_go", place_->entrypoint(limit)));
  if (started.failure) co_return refuse(started.failure->sentence());
  // On disk before it gets an exec, so that a later daemon takes it over. One that is not, because
  // of a crash before, ends by itself.
  facts_->container.set_secret(secret);
  facts_->container.set_guest_pid(hello.process.pid);
  facts_->container.set_guest_start_ticks(hello.process.start_time);
  AGBOX_CO_TRY_VOID(co_await step("companion.guest_commit", store()));
  co_return hello;
}

// Of an earlier daemon.
asio::awaitable<void> CompanionGuest::reconnect() {
  const auto listening = co_await place_->reconnect(facts_for_place());
  if (listening) co_return co_await wait_for_return();
  is_busy_ = false;
  if (!co_await is_cancelled()) lost(listening.error().message());
}

asio::awaitable<void> CompanionGuest::wait_for_return() {
  const bool is_back =
      co_await changed_.wait([this] { return !has_joined_ || place_->is_connected(); },
                             std::chrono::steady_clock::now() + kReturnLimit);
  is_busy_ = false;
  if (co_await is_cancelled()) co_return;
  if (!is_back) co_return lost("what runs commands in it has ended");
  // Its container ended first, and no other guest was started while this waited.
  if (!has_joined_ && sandbox_.execs.has_any_of(*this)) summon();
}

void CompanionGuest::expect_end(const std::string& exec_id) {
  if (sandbox_.is_supervised()) sandbox_.spawn(wait_for_end(exec_id));
}

asio::awaitable<void> CompanionGuest::wait_for_end(std::string exec_id) {
  const auto runs = [this, &exec_id] { return sandbox_.execs.runs(exec_id, *this); };
  const bool has_ended = co_await changed_.wait([&] { return !has_joined_ || !runs(); },
                                                std::chrono::steady_clock::now() + kEndLimit);
  // One that is waited for gets the cancel again when it is back.
  if (has_ended || is_busy_ || co_await is_cancelled()) co_return;
  lost("what runs commands in it did not end one that was cancelled");
}

void CompanionGuest::rest() {
  has_joined_ = false;
  place_->rest();
  facts_->container.clear_secret();
  facts_->container.clear_guest_pid();
  facts_->container.clear_guest_start_ticks();
  changed_.notify();
}

void CompanionGuest::container_ended(const std::string& how) {
  if (may_have_execs()) return lost(how);
  rest();
}

void CompanionGuest::lost(const std::string& how) {
  rest();
  sandbox_.execs.end_sent_of(
      *this, {.state = v1::EXEC_STATE_FAILED,
              .exit_code = 0,
              .error_code = "CONTAINER_EXITED",
              .error_message = "container " + name_ + " of the sandbox did not live on: " + how});
  // Others came in the meantime.
  if (sandbox_.execs.has_any_of(*this)) summon();
}

void CompanionGuest::forget() {
  place_->rest();
  has_joined_ = false;
  facts_ = nullptr;
}

// Through the journal, so that no older record of the companion comes after it.
asio::awaitable<Result<>> CompanionGuest::store() {
  const auto on_disk = sandbox_.journal.append(
      {change::PutContainer{facts_->sandbox_id, name_, facts_->container}}, Urgency::GoesOn);
  co_return co_await on_disk.wait();
}

// --- reports ---

void CompanionGuest::guest_connected(const GuestHello& hello) {
  changed_.notify();
  if (has_joined_) sandbox_.execs.guest_connected(hello, this);
}

void CompanionGuest::guest_lost(const std::string& /*why*/) {
  if (!has_joined_ || is_busy_ || !sandbox_.is_supervised()) return;
  is_busy_ = true;
  sandbox_.spawn(wait_for_return());
}

void CompanionGuest::exec_ended(const ExecEnd& end) {
  sandbox_.execs.guest_ended(end, this);
  changed_.notify();
}

void CompanionGuest::exec_not_sent(const std::string& exec_id, const std::string& why) {
  sandbox_.execs.guest_not_reached(exec_id, why, this);
}

void CompanionGuest::exec_truncated(const std::string& exec_id) {
  sandbox_.execs.guest_truncated(exec_id, this);
}

}  // namespace agbox
