// SPDX-License-Identifier: Apache-2.0
// The daemon in a program of guest_link_fuzz: its calls of GuestLinks, the callers that wait for
// answers, and the events. Everything that it sees goes to the promises.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/task_group.h"
#include "base/check.h"
#include "base/log.h"
#include "base/unique_fd.h"
#include "fuzz/guest_link/program.h"
#include "fuzz/guest_link/promises.h"
#include "guestlink/guest_links.h"
#include "guestwire/frame.h"
#include "guestwire/proof.h"

namespace agbox::guestlink {

class DaemonSide {
 public:
  using Handler = std::function<void(EventKind)>;  // called after the promises have seen an event

  DaemonSide(const boost::asio::any_io_executor& executor, std::filesystem::path root,
             Promises& promises, Handler handler)
      : executor_(executor),
        root_(std::move(root)),
        promises_(promises),
        handler_(std::move(handler)),
        waiting_(executor) {
    start(0, 0);
    make();
  }

  const std::vector<std::shared_ptr<Caller>>& callers() const { return callers_; }
  bool is_connected() const { return links_->is_connected(kSandbox); }
  std::filesystem::path directory() const { return LinkFolder::path_of(root_, kSandbox); }
  // How many bytes of orders it gave to guests.
  std::size_t bytes_ordered() const { return bytes_ordered_; }

  void start(unsigned times, unsigned refusals) {
    LinkLimits limits;
    limits.handshake = (times & 1U) != 0 ? kNow : kNever;
    limits.preparation = (times & 2U) != 0 ? kNow : kNever;
    limits.penalty = (times & 4U) != 0 ? kNever : kNow;
    limits.between_connections = (refusals & 1U) != 0 ? kNever : kNow;
    if ((refusals & 1U) != 0) limits.connections_at_once = 1;
    if ((refusals & 2U) != 0) limits.unproven_connections = 1;
    is_users_guest_ = (refusals & 4U) == 0;
    limits.guest_uid = ::geteuid() + (is_users_guest_ ? 0 : 1);
    links_.emplace(executor_, executor_, root_, events(), Logger(), limits);
  }

  // Between these two the loop runs until it is idle.
  void begin_shutdown() {
    has_shut_down_ = false;
    waiting_.spawn("shutdown", shut_down());
  }
  void end_shutdown() {
    AGBOX_CHECK(has_shut_down_, "a shutdown waits neither for a guest nor for a pause");
    for (const auto& caller : callers_) {
      AGBOX_CHECK(caller->is_answered, "a shutdown answers every caller");
    }
    callers_.clear();
    links_.reset();
  }
  void remove_directory() const {
    AGBOX_CHECK(LinkFolder::remove(directory()), "a link's directory can be removed");
  }

  void perform(const Step& step) {
    const auto [first, second, third] = step.arguments;
    switch (step.letter) {
      case 'M':
        return make();
      case 'A':
        return adopt(first % 2 == 0);
      case 'R':
        links_->rest(kSandbox);
        return link_ended();
      case 'Z':
        // As forget() does, whose second half is for another thread.
        links_->rest(kSandbox);
        link_ended();
        return remove_directory();
      case 'E':
        return expect(first, second);
      case 'H':
        return call(Caller::Kind::Hello, first);
      case 'N':
        return call(Caller::Kind::Entrypoint, first);
      case 'P':
        return call(Caller::Kind::Ping, first);
      case 'T':
        return call(Caller::Kind::Probe, first);
      case 'K':
        return cancel(first);
      case 'G':
        return go(first);
      case 'X':
        return start_exec(exec_name(first), second);
      case 'C':
        if (links_->cancel_exec(kSandbox, exec_name(first), kNow)) {
          promises_.exec_ordered(exec_name(first));
        }
        return;
      case 'F':
        return forget_exec(exec_name(first));
      case 'S':
        if (links_->stop(kSandbox)) AGBOX_CHECK(has_link_, "a stop is for a guest");
        return;
      case 'D':
        links_->doubt(kSandbox);
        if (has_link_) promises_.doubted();
        return;
    }
  }

 private:
  static constexpr char kSandbox[] = "sandbox";
  static constexpr std::chrono::milliseconds kNow{0};
  static constexpr std::chrono::milliseconds kNever{3'600'000};
  static constexpr std::size_t kMaxCallers = 128;
  static constexpr std::size_t kMaxBytesOrdered = std::size_t{12} << 20;
  static constexpr std::size_t kLargeOrder = 900'000;  // more than a socket takes at once
  static constexpr std::size_t kTooLargeGo = std::size_t{1} << 20;
  static constexpr std::size_t kTooLargeExec = guestwire::kMaxFrameToGuest;

  GuestLinksEvents events() {
    return {.connected =
                [this](const std::string&, const GuestHello& hello) {
                  promises_.connected(hello);
                  handler_(EventKind::Connected);
                },
            .lost =
                [this](const std::string&, const std::string& why) {
                  promises_.lost(why);
                  handler_(EventKind::Lost);
                },
            .exec_ended =
                [this](const std::string&, const ExecEnd& end) {
                  promises_.exec_ended(end);
                  handler_(EventKind::ExecEnded);
                },
            .exec_truncated =
                [this](const std::string&, const std::string& exec_id) {
                  promises_.exec_truncated(exec_id);
                  handler_(EventKind::ExecTruncated);
                }};
  }

  boost::asio::awaitable<void> shut_down() {
    link_ended();
    co_await links_->shutdown();
    has_shut_down_ = true;
  }

  void make() {
    const auto place = links_->make(kSandbox);
    AGBOX_CHECK(place, "a link can be made at any time");
    identity_ = place->identity;
    link_ended();
    has_link_ = true;
  }
  void adopt(bool is_same) {
    FolderIdentity identity = identity_;
    if (!is_same) ++identity.inode;
    if (!links_->adopt(kSandbox, identity)) return;
    AGBOX_CHECK(is_same, "another directory is not adopted");
    link_ended();
    has_link_ = true;
  }
  void link_ended() {
    promises_.link_ended();
    has_link_ = false;
  }

  void expect(unsigned secret, unsigned process) {
    Expectation expectation;
    if (secret % 3 == 1) expectation.secret = new_secret();
    if (secret % 3 == 2 && !last_secret_.empty()) expectation.secret = last_secret_;
    if (process % 3 != 0) expectation.process.pid = ::getpid() + (process % 3 == 1 ? 0 : 1);
    const std::optional<std::string> expected = expectation.secret;
    // Before the call: it may fail to listen, and has forgotten the last start all the same.
    if (has_link_) promises_.expected(expected, is_users_guest_ && process % 3 != 2);
    AGBOX_CHECK(links_->expect(kSandbox, std::move(expectation)).has_value() == has_link_,
                "a link that exists can listen");
  }

  void go(unsigned kind) {
    GoOrder order;
    order.secret = kind == 1 || !promises_.secret() ? new_secret() : *promises_.secret();
    if (kind == 2) order.secret.pop_back();
    order.command = {text(kind == 3 ? kTooLargeGo : kind == 4 ? kLargeOrder : 0)};
    const bool is_refused = order.secret.size() != guestwire::kSecretSize ||
                            order.command[0].size() == kTooLargeGo ||
                            (promises_.secret() && order.secret != promises_.secret());
    const bool is_possible = promises_.is_connected() && !is_refused;
    const auto said = links_->go(kSandbox, order);
    AGBOX_CHECK(!said || is_possible, "go is for a connected guest, with its start's secret");
    // Also if it failed: a part of it may have got to the guest.
    if (is_possible && !promises_.secret()) promises_.secret_handed_out(order.secret);
  }

  void start_exec(const std::string& exec_id, unsigned kind) {
    ExecOrder order;
    order.exec_id = exec_id;
    order.command = {text(kind == 1 ? kLargeOrder : kind == 2 ? kTooLargeExec : 0)};
    order.output_limit_bytes = ++orders_;  // to be found again on the other side
    order.out = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (kind != 3) order.err = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    const bool is_refused =
        !order.err || order.command[0].size() == kTooLargeExec || !links_->takes_execs(kSandbox);
    if (!links_->start_exec(kSandbox, std::move(order))) return;
    AGBOX_CHECK(!is_refused, "an order that cannot be is refused");
    promises_.exec_started(exec_id, orders_);
  }
  void forget_exec(const std::string& exec_id) {
    if (links_->forget_exec(kSandbox, exec_id)) promises_.exec_forgotten(exec_id);
  }
  // Empty once those of this input have taken enough time and memory.
  std::string text(std::size_t size) {
    if (bytes_ordered_ + size > kMaxBytesOrdered) return "";
    bytes_ordered_ += size;
    return std::string(size, 'x');
  }
  std::string new_secret() {
    last_secret_ = std::string(guestwire::kSecretSize, 's');
    last_secret_.front() = static_cast<char>(++secrets_);
    return last_secret_;
  }

  void call(Caller::Kind kind, unsigned deadline) {
    if (callers_.size() >= kMaxCallers) return;
    auto caller = std::make_shared<Caller>();
    caller->kind = kind;
    caller->is_late = deadline % 2 == 1;
    callers_.push_back(caller);
    caller->signal = waiting_.spawn("caller", wait(caller));
  }
  boost::asio::awaitable<void> wait(std::shared_ptr<Caller> caller) {
    promises_.begins(*caller);
    const auto limit = caller->is_late ? kNow : kNever;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    switch (caller->kind) {
      case Caller::Kind::Hello:
        co_return promises_.answered(*caller, co_await links_->hello(kSandbox, deadline));
      case Caller::Kind::Entrypoint:
        co_return promises_.answered(*caller, co_await links_->entrypoint(kSandbox, deadline));
      case Caller::Kind::Ping:
        co_return promises_.answered(*caller, co_await links_->ping(kSandbox, limit));
      case Caller::Kind::Probe: {
        // The link adds time for a guest that answers late.
        const ProbeTarget target{
            .address = {0x0A630001}, .port = 1, .limit = limit - std::chrono::minutes(1)};
        co_return promises_.answered(*caller, co_await links_->probe(kSandbox, target));
      }
    }
  }
  void cancel(unsigned index) {
    for (const auto& caller : callers_) {
      if (caller->is_answered || index-- > 0) continue;
      caller->is_cancelled = true;
      return caller->signal->emit(boost::asio::cancellation_type::terminal);
    }
  }

  boost::asio::any_io_executor executor_;
  std::filesystem::path root_;
  Promises& promises_;
  Handler handler_;
  std::optional<GuestLinks> links_;
  bool has_link_ = false;
  bool is_users_guest_ = true;
  bool has_shut_down_ = false;
  FolderIdentity identity_;
  std::string last_secret_;
  unsigned secrets_ = 0;
  std::uint64_t orders_ = 0;
  std::size_t bytes_ordered_ = 0;
  std::vector<std::shared_ptr<Caller>> callers_;
  TaskGroup waiting_;
};

}  // namespace agbox::guestlink
