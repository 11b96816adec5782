// SPDX-License-Identifier: Apache-2.0
// What GuestLink promises whatever a guest sends, checked from the outside: by the calls that the
// daemon made, the events that it got, and the answers that its callers got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/task_group.h"
#include "base/check.h"
#include "base/result.h"
#include "guestlink/guest_report.h"
#include "model/guest/guest_error.h"
#include "model/guest/input_report.h"
#include "model/ids.h"
#include "model/network/network_probe.h"

namespace agbox::guestlink {

// A coroutine that waits for something of the guest.
struct Caller {
  enum class Kind { Hello, Entrypoint, Ping, Probe, Input };
  Kind kind = Kind::Hello;
  std::uint64_t id = 0;  // of the pipe whose report it waits for
  bool is_late = false;  // its deadline had passed when it began to wait
  bool is_cancelled = false;
  bool is_answered = false;
  unsigned start = 0;       // of the container, when it began to wait
  unsigned connection = 0;  // of the guest, likewise
  std::optional<Task> task{};

  bool asks_one_connection() const {
    return kind == Kind::Ping || kind == Kind::Probe || kind == Kind::Input;
  }
};

class Promises {
 public:
  // Of this container start, once it was handed out; and of the one before.
  const std::optional<std::string>& secret() const { return secret_; }
  const std::optional<std::string>& last_secret() const { return last_secret_; }
  bool is_connected() const { return hello_ && hello_->failure.empty(); }
  bool takes_execs() const { return is_connected() && secret_; }

  // --- calls of the daemon ---

  // The link ended, and with it everything that was known of the guest.
  void link_ended() {
    begin_start(std::nullopt);
    is_expected_ = false;
  }
  // `can_be_ours`: whether a connection of this process may be the guest's.
  void expected(const std::optional<std::string>& secret, bool can_be_ours) {
    begin_start(secret);
    is_expected_ = true;
    can_be_ours_ = can_be_ours;
  }
  // To the guest that is connected: it need not prove that it has it.
  void secret_handed_out(const std::string& secret) {
    secret_ = secret;
    admissions_ = proofs_ = 1;
  }
  void may_have_ended() { may_have_ended_ = true; }

  void exec_started(const std::string& exec_id, std::uint64_t order) {
    AGBOX_CHECK(takes_execs(), "an order is accepted only for a guest that takes execs");
    AGBOX_CHECK(check_id("exec_id", exec_id), "an order is accepted only with a valid id");
    known_.insert(exec_id);
    AGBOX_CHECK(reportable_.try_emplace(exec_id).second, "an exec is given to a guest once");
    due_orders_.insert(order);
  }
  void exec_ordered(const std::string& exec_id) const {
    AGBOX_CHECK(is_connected() && known_.contains(exec_id),
                "only a guest that knows an exec is given orders about it");
  }
  void exec_forgotten(const std::string& exec_id) {
    exec_ordered(exec_id);
    reportable_.erase(exec_id);
  }

  // --- what the guest does, and gets ---

  void connection_opened() { ++connections_opened_; }
  // That it has the secret of this container start.
  void proof_sent() { ++proofs_; }
  void welcomed(const std::optional<std::string>& proved) const {
    AGBOX_CHECK(!secret_before_ || proved == secret_before_, "only who proves is welcomed");
  }
  void order_arrived(std::uint64_t order) {
    AGBOX_CHECK(due_orders_.erase(order) + lost_orders_.erase(order) == 1,
                "a guest gets every order once, and none that was refused");
  }

  // --- events ---

  void connected(const GuestHello& hello) {
    check_event();
    AGBOX_CHECK(!hello_, "a guest connects once before it is lost");
    check(hello);
    AGBOX_CHECK(secret_ || hello.execs.empty(), "a guest without a secret knows no exec");
    AGBOX_CHECK(secret_ || hello.phase == GuestPhase::Prepared, "a new guest is prepared");
    admitted();
    hello_ = hello;
    ++connection_;
    for (const std::string& exec_id : hello.execs) {
      known_.insert(exec_id);
      AGBOX_CHECK(reportable_.try_emplace(exec_id).second, "a guest names an exec once");
    }
  }
  void lost(const std::string& why) {
    check_event();
    check_text(why, 256);
    AGBOX_CHECK(++losses_ <= connections_opened_, "a connection is lost once");
    if (!hello_) admitted();
    forget_connection();
  }
  void exec_ended(const ExecEnd& end) {
    check_event();
    AGBOX_CHECK(hello_, "execs end on a connection");
    AGBOX_CHECK(reportable_.erase(end.exec_id) == 1,
                "an exec that the guest was given or came with ends once, unless forgotten");
    check_text(end.detail, kMaxSentence);
    const bool is_signal = end.how == ExecEnd::How::Signaled;
    AGBOX_CHECK(end.code >= (is_signal ? 1 : 0) && end.code <= (is_signal ? 64 : 255),
                "an exit code or a signal");
    AGBOX_CHECK(end.user_cpu_microseconds <= INT64_MAX / 1000 &&
                    end.system_cpu_microseconds <= INT64_MAX / 1000,
                "CPU times fit into durations");
  }
  void exec_truncated(const std::string& exec_id) {
    check_event();
    const auto exec = reportable_.find(exec_id);
    AGBOX_CHECK(exec != reportable_.end() && !exec->second,
                "an exec's output is truncated once, before its end");
    exec->second = true;
  }

  // --- callers ---

  void begins(Caller& caller) const {
    caller.start = start_;
    caller.connection = connection_;
  }
  void answered(Caller& caller, const GuestResult<GuestHello>& hello) {
    if (!ended(caller, hello)) return;
    AGBOX_CHECK(hello_ && hello->execs == hello_->execs && hello->failure == hello_->failure,
                "hello is that of the guest that is connected");
  }
  void answered(Caller& caller, const GuestResult<EntrypointOutcome>& outcome) {
    if (!ended(caller, outcome)) return;
    AGBOX_CHECK(secret_ && proofs_ > 0, "only a proven guest reports an entrypoint, after go");
    if (outcome->failure) {
      const EntrypointFailure& failure = *outcome->failure;
      check_text(failure.detail, kMaxSentence);
      check_text(failure.output_tail, kMaxTail);
      check_text(failure.sentence(), kMaxSentence + kMaxTail + 256);
      AGBOX_CHECK(failure.code >= 0 && failure.code <= 255, "an exit code or a signal");
    }
    AGBOX_CHECK(!outcome_ || outcome_->failure == outcome->failure,
                "an entrypoint has one outcome in a container start");
    outcome_ = *outcome;
  }
  void answered(Caller& caller, const GuestResult<>& pong) {
    if (ended(caller, pong)) AGBOX_CHECK(hello_, "only a connected guest answers a ping");
  }
  void answered(Caller& caller, const GuestResult<ProbeReport>& report) {
    if (ended(caller, report)) check_text(report->detail, kMaxSentence);
  }

  void answered(Caller& caller, const GuestResult<InputReport>& report) {
    if (ended(caller, report)) check_text(report->detail, kMaxSentence);
  }

  // --- the loop ---

  void loop_begins() { secret_before_ = secret_; }

  // Once nothing is left to do.
  void check_idle(const std::vector<std::shared_ptr<Caller>>& callers) const {
    for (const auto& caller : callers) {
      if (caller->is_answered) continue;
      AGBOX_CHECK(!caller->is_late && !caller->is_cancelled,
                  "a caller waits no longer than it may");
      AGBOX_CHECK(caller->start == start_, "no caller outlives a container start or its link");
      if (caller->asks_one_connection()) {
        AGBOX_CHECK(hello_ && caller->connection == connection_,
                    "no caller waits for an answer of a guest that was lost");
        continue;
      }
      AGBOX_CHECK(!may_have_ended_, "a caller that waits is the first to hear of a doubt");
      const bool is_known =
          caller->kind == Caller::Kind::Hello ? hello_.has_value() : outcome_.has_value();
      AGBOX_CHECK(!is_known, "no caller waits for what is known");
    }
  }
  void check_orders_arrived() const {
    AGBOX_CHECK(due_orders_.empty(), "a guest that reads gets its orders");
  }

 private:
  static constexpr std::size_t kMaxSentence = 1024;
  static constexpr std::size_t kMaxTail = 4096;

  static void check_text(std::string_view text, std::size_t limit) {
    AGBOX_CHECK(text.size() <= limit, "a text of a guest is bounded");
    AGBOX_CHECK(readable(text, limit) == text, "a text of a guest is readable");
  }
  static void check(const GuestHello& hello) {
    check_text(hello.build_id, 128);
    check_text(hello.failure, kMaxSentence);
    AGBOX_CHECK(
        hello.notes.size() <= 32 && hello.mounts.size() <= 1024 && hello.execs.size() <= 16384,
        "the lists of a guest are bounded");
    for (const std::string& note : hello.notes) check_text(note, kMaxSentence);
    for (const GuestMount& mount : hello.mounts) {
      check_text(mount.target, kMaxTail);
      check_text(mount.failure, kMaxSentence);
    }
    for (const std::string& exec_id : hello.execs) {
      AGBOX_CHECK(check_id("exec_id", exec_id), "a guest's execs have valid ids");
    }
  }

  void check_event() const {
    AGBOX_CHECK(is_expected_, "nothing is reported of a link that expects no one, or was closed");
    AGBOX_CHECK(can_be_ours_, "nothing is reported of another process's connection");
  }
  void admitted() {
    if (secret_) AGBOX_CHECK(++admissions_ <= proofs_, "no one is admitted without a proof");
  }

  void begin_start(const std::optional<std::string>& secret) {
    ++start_;
    may_have_ended_ = false;
    outcome_.reset();
    forget_connection();
    if (secret_) last_secret_ = secret_;
    secret_ = secret;
    admissions_ = proofs_ = 0;
  }
  void forget_connection() {
    hello_.reset();
    known_.clear();
    reportable_.clear();
    lost_orders_.merge(due_orders_);
  }

  template <class T>
  bool ended(Caller& caller, const GuestResult<T>& answer) {
    caller.is_answered = true;
    if (answer) return true;
    const GuestError& error = answer.error();
    check_text(error.message(), kMaxSentence);
    if (error.kind() == GuestErrorKind::Cancelled) {
      AGBOX_CHECK(caller.is_cancelled, "only who was cancelled hears so");
    }
    if (error.kind() == GuestErrorKind::MayHaveEnded) {
      AGBOX_CHECK(!caller.asks_one_connection() && may_have_ended_, "a doubt is reported once");
      may_have_ended_ = false;
    }
    return false;
  }

  unsigned start_ = 0;
  bool is_expected_ = false;
  bool can_be_ours_ = false;
  bool may_have_ended_ = false;
  std::optional<std::string> secret_;
  std::optional<std::string> last_secret_;
  std::optional<std::string> secret_before_;  // what this run of the loop did
  unsigned proofs_ = 0;                       // of that secret
  unsigned admissions_ = 0;                   // since then
  std::optional<EntrypointOutcome> outcome_;

  unsigned connections_opened_ = 0;
  unsigned losses_ = 0;
  unsigned connection_ = 0;
  std::optional<GuestHello> hello_;
  std::set<std::string> known_;             // execs, of this connection
  std::map<std::string, bool> reportable_;  // those whose end may be reported; was it truncated?
  std::set<std::uint64_t> due_orders_;      // that this connection's guest must get
  std::set<std::uint64_t> lost_orders_;     // that an earlier one may have got
};

}  // namespace agbox::guestlink
