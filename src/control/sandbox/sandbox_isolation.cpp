// SPDX-License-Identifier: Apache-2.0
#include "control/sandbox/sandbox_isolation.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "async/cancellation.h"
#include "model/reasons.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;

// An attempt takes milliseconds, and users who have fixed the cause want to continue.
constexpr auto kFirstLoadDelay = 200ms;
constexpr auto kLongestLoadDelay = 5000ms;

constexpr const char* kCannotIsolate =
    "sandboxes cannot be isolated, so none is created or started";

const char* sentence_of(IsolationState::Paused paused) {
  switch (paused) {
    case IsolationState::Paused::No:
      return ": ";
    case IsolationState::Paused::Begun:
      return " is being paused: ";
    case IsolationState::Paused::Yes:
      return " is paused: ";
  }
  return ": ";
}

std::unexpected<Error> gave_up() {
  return fail(reason::kCancelled, "gave up waiting for the isolation");
}

}  // namespace

SandboxIsolation::SandboxIsolation(asio::io_context& io, Place& place, Options options, Logger log)
    : place_(place),
      options_(std::move(options)),
      log_(std::move(log)),
      has_outcome_(io.get_executor()),
      is_in_place_(io.get_executor()),
      retry_timer_(io.get_executor(), kFirstLoadDelay, kLongestLoadDelay),
      tasks_(io.get_executor()) {}

// --- start and stop ---

void SandboxIsolation::start() {
  AGBOX_ON_ITS_THREAD(thread_);
  tasks_.spawn("isolation", put_in_place());
}

asio::awaitable<void> SandboxIsolation::put_in_place() {
  do {
    applied_resolvers_ = wanted_resolvers();
    set_outcome(
        co_await place_.start_isolation(applied_resolvers_, [this] { isolation_changed(); }));
  } while (!*outcome_ && co_await retry_timer_.wait());
}

void SandboxIsolation::set_outcome(Result<> outcome) {
  if (!outcome && outcome != outcome_) {
    log_.error(kCannotIsolate, {{"error", outcome.error().message()}});
  }
  const bool was_refused = outcome_ && !*outcome_;
  outcome_ = std::move(outcome);
  has_outcome_.set();
  if (!*outcome_) {
    // What runs cannot be verified, so it fails; once is enough.
    if (!was_refused) isolation_changed();
    return;
  }
  is_in_place_.set();
  resolvers_changed();
  if (!was_refused) return verify_those_due();
  log_.info("sandboxes can be isolated now");
  isolation_changed();
}

asio::awaitable<void> SandboxIsolation::stop(bool remove_rules) {
  tasks_.cancel();
  co_await tasks_.join();
  const auto stopped = co_await place_.stop_isolation(remove_rules);
  if (!stopped) {
    log_.warn("the isolation does not end as it should", {{"error", stopped.error().message()}});
  }
}

asio::awaitable<Result<>> SandboxIsolation::in_place() {
  if (!co_await has_outcome_.wait()) co_return gave_up();
  co_return check();
}

asio::awaitable<Result<>> SandboxIsolation::at_last_in_place() {
  if (!co_await is_in_place_.wait()) co_return gave_up();
  co_return Result<>{};
}

Result<> SandboxIsolation::check() const {
  if (!outcome_ || *outcome_) return {};
  const Error& error = outcome_->error();
  return fail(error.reason(), std::string(kCannotIsolate) + ": " + error.message() +
                                  "; agboxd tries again by itself");
}

IsolationHealth SandboxIsolation::health() const {
  IsolationHealth health = place_.isolation_health();
  if (const auto failed = check(); !failed) health.shortcoming = failed.error().message();
  for (const auto& [sandbox_id, problem] : problems_) {
    if (health.shortcoming.empty() && options_.is_live(sandbox_id)) {
      health.shortcoming = "sandbox " + sandbox_id + sentence_of(problem.paused) + problem.why;
    }
  }
  return health;
}

// --- resolvers ---

void SandboxIsolation::new_resolvers(const store::v1::CreatedWith& created_with) {
  options_.created_with = created_with;
  resolvers_changed();
}

void SandboxIsolation::keep_resolvers(const std::string& sandbox_id,
                                      const store::v1::CreatedWith& created_with) {
  release_resolvers(sandbox_id);
  std::vector<Ipv4Address>& kept = resolvers_[sandbox_id];
  kept = resolvers_of(created_with);
  for (const Ipv4Address& resolver : kept) ++asked_by_[resolver];
  resolvers_changed();
}

std::vector<Ipv4Address> SandboxIsolation::resolvers_of(
    const store::v1::CreatedWith& created_with) const {
  std::vector<Ipv4Address> resolvers;
  for (const std::string& text : created_with.dns()) {
    if (const auto address = parse_ipv4_address(text)) {
      resolvers.push_back(*address);
    } else {
      log_.warn("a stored resolver cannot be read, and no sandbox reaches it",
                {{"error", address.error().message()}});
    }
  }
  return resolvers;
}

void SandboxIsolation::forget(const std::string& sandbox_id) {
  problems_.erase(sandbox_id);
  guest_awaited_.erase(sandbox_id);
  starting_.erase(sandbox_id);
  release_resolvers(sandbox_id);
  resolvers_changed();
}

void SandboxIsolation::release_resolvers(const std::string& sandbox_id) {
  const auto kept = resolvers_.extract(sandbox_id);
  if (kept.empty()) return;
  for (const Ipv4Address& resolver : kept.mapped()) {
    if (--asked_by_[resolver] == 0) asked_by_.erase(resolver);
  }
}

std::vector<Ipv4Address> SandboxIsolation::wanted_resolvers() const {
  std::vector<Ipv4Address> wanted = resolvers_of(options_.created_with);
  for (const auto& [resolver, sandboxes] : asked_by_) wanted.push_back(resolver);
  std::ranges::sort(wanted);
  const auto repeated = std::ranges::unique(wanted);
  wanted.erase(repeated.begin(), repeated.end());
  return wanted;
}

void SandboxIsolation::resolvers_changed() {
  const bool is_in_place = outcome_ && *outcome_;
  if (!is_in_place || is_applying_ || wanted_resolvers() == applied_resolvers_) return;
  is_applying_ = true;
  tasks_.spawn("resolvers", apply_resolvers());
}

asio::awaitable<void> SandboxIsolation::apply_resolvers() {
  for (auto wanted = wanted_resolvers(); wanted != applied_resolvers_;
       wanted = wanted_resolvers()) {
    applied_resolvers_ = wanted;
    // If it fails, the host's isolation reports that itself and retries.
    static_cast<void>(co_await place_.set_resolvers(std::move(wanted)));
    if (co_await is_cancelled()) break;
  }
  is_applying_ = false;
}

// --- verification ---

asio::awaitable<Result<>> SandboxIsolation::verify_network(SandboxPlace& place) {
  const Verification verified = co_await place.verify(VerifyFrom::Outside);
  // Unknown is the best outcome without a guest.
  if (verified.is_unknown) co_return Result<>{};
  co_return verified.outcome;
}

asio::awaitable<Result<>> SandboxIsolation::verify_starting(std::string sandbox_id,
                                                            SandboxPlace& place) {
  auto verification = co_await place.verify(VerifyFrom::Inside);
  if (verification.outcome) starting_[sandbox_id] = false;
  co_return std::move(verification.outcome);
}

// Without a guest that would not respond.
asio::awaitable<Verification> SandboxIsolation::verification_of(const std::string& sandbox_id,
                                                                SandboxPlace& place) {
  if (auto in_place = check(); !in_place) {
    co_return Verification{.outcome = std::unexpected(std::move(in_place.error()))};
  }
  const bool has_guest = place.is_connected() && !is_paused(sandbox_id);
  co_return co_await place.verify(has_guest ? VerifyFrom::Inside : VerifyFrom::Outside);
}

asio::awaitable<Verification> SandboxIsolation::verify_live(std::string sandbox_id,
                                                            SandboxPlace& place) {
  const bool was_paused = is_paused(sandbox_id);
  Verification attempt = co_await verification_of(sandbox_id, place);
  if (!options_.is_live(sandbox_id)) co_return attempt;
  // What it saw may be older than what another verification paused it for.
  const bool is_outdated = !was_paused && is_paused(sandbox_id);
  if (is_outdated && (attempt.outcome || attempt.is_unknown)) {
    verify_soon(sandbox_id);
  } else {
    report(sandbox_id, attempt);
  }
  co_return attempt;
}

void SandboxIsolation::report(const std::string& sandbox_id, const Verification& attempt) {
  if (attempt.outcome || attempt.is_unknown) {
    return options_.on_success(sandbox_id, attempt.outcome.has_value());
  }
  const std::string why = attempt.outcome.error().message();
  const Problem* known = problem_of(sandbox_id);
  if (known == nullptr || known->why != why) {
    log_.error("the isolation of a sandbox does not hold any more",
               {{"sandbox_id", sandbox_id}, {"error", why}});
  }
  options_.on_failure(sandbox_id, why);
}

void SandboxIsolation::set_problem(const std::string& sandbox_id, Problem problem) {
  if (problem.why.empty()) {
    problems_.erase(sandbox_id);
  } else {
    problems_.insert_or_assign(sandbox_id, std::move(problem));
  }
}

const SandboxIsolation::Problem* SandboxIsolation::problem_of(const std::string& sandbox_id) const {
  const auto known = problems_.find(sandbox_id);
  return known == problems_.end() ? nullptr : &known->second;
}

bool SandboxIsolation::is_paused(const std::string& sandbox_id) const {
  const Problem* problem = problem_of(sandbox_id);
  return problem != nullptr && problem->paused != IsolationState::Paused::No;
}

bool SandboxIsolation::can_be_verified(const std::string& sandbox_id) const {
  const SandboxPlace* place = options_.place_of(sandbox_id);
  return place != nullptr && (place->is_connected() || is_paused(sandbox_id) ||
                              not_waiting_for_guest_.contains(sandbox_id));
}

void SandboxIsolation::add_due(const std::string& sandbox_id) {
  if (std::ranges::find(due_, sandbox_id) == due_.end()) due_.push_back(sandbox_id);
}

void SandboxIsolation::verify_soon(const std::string& sandbox_id) {
  not_waiting_for_guest_.insert(sandbox_id);
  add_due(sandbox_id);
  verify_those_due();
}

// A sandbox whose guest stays away is verified as well: it may be hostile.
void SandboxIsolation::isolation_changed() {
  for (const std::string& sandbox_id : options_.live_sandboxes()) {
    not_waiting_for_guest_.insert(sandbox_id);
  }
  verify_live_sandboxes();
}

void SandboxIsolation::verify_live_sandboxes() {
  AGBOX_ON_ITS_THREAD(thread_);
  for (const std::string& sandbox_id : options_.live_sandboxes()) add_due(sandbox_id);
  for (auto& [sandbox_id, has_changed] : starting_) has_changed = true;
  verify_those_due();
}

void SandboxIsolation::sandbox_is_live(const std::string& sandbox_id) {
  const auto started = starting_.extract(sandbox_id);
  if (started.empty() || !started.mapped()) return;
  add_due(sandbox_id);
  verify_those_due();
}

void SandboxIsolation::guest_connected(const std::string& sandbox_id) {
  // A guest that connects during its verification could not take part in it: verify again.
  if (guest_awaited_.erase(sandbox_id) > 0 || sandbox_id == being_verified_) add_due(sandbox_id);
  if (std::ranges::find(due_, sandbox_id) != due_.end()) verify_those_due();
}

void SandboxIsolation::verify_those_due() {
  if (std::exchange(is_verifying_, true)) return;
  tasks_.spawn("verify the isolation again", verify_one_by_one());
}

asio::awaitable<void> SandboxIsolation::verify_one_by_one() {
  if (co_await has_outcome_.wait()) {
    while (const auto sandbox_id = next_due()) {
      if (co_await is_cancelled()) co_return;
      being_verified_ = *sandbox_id;
      co_await verify_again(*sandbox_id);
      being_verified_.clear();
    }
  }
  is_verifying_ = false;
}

std::optional<std::string> SandboxIsolation::next_due() {
  std::erase_if(due_, std::not_fn(options_.is_live));
  std::erase_if(not_waiting_for_guest_, std::not_fn(options_.is_live));
  const auto next =
      std::ranges::find_if(due_, [this](const std::string& id) { return can_be_verified(id); });
  if (next == due_.end()) return std::nullopt;
  std::string sandbox_id = std::move(*next);
  due_.erase(next);
  not_waiting_for_guest_.erase(sandbox_id);
  return sandbox_id;
}

asio::awaitable<void> SandboxIsolation::verify_again(const std::string& sandbox_id) {
  const auto attempt = co_await verify_live(sandbox_id, *options_.place_of(sandbox_id));
  if (!attempt.is_unknown || !options_.is_live(sandbox_id)) co_return;
  log_.debug("isolation is verified again when the guest reconnects",
             {{"sandbox_id", sandbox_id}, {"error", attempt.outcome.error().message()}});
  guest_awaited_.insert(sandbox_id);
}

}  // namespace agbox
