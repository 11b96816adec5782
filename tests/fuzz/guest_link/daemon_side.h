// SPDX-License-Identifier: Apache-2.0
// The daemon in a program of guest_link_fuzz: its calls of GuestLink, the callers that wait for
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
#include "guestlink/guest_link.h"
#include "guestwire/frame.h"
#include "guestwire/proof.h"

namespace agbox::guestlink {

class DaemonSide final : public GuestListener {
 public:
  using Handler = std::function<void(EventKind)>;  // called after the promises have seen an event

  DaemonSide(const boost::asio::any_io_executor& executor, std::filesystem::path root,
             Promises& promises, Handler handler)
      : executor_(executor),
        root_(std::move(root)),
        promises_(promises),
        handler_(std::move(handler)),
        conversations_(executor),
        waiting_(executor) {
    start(0, 0);
    make();
  }

  const std::vector<std::shared_ptr<Caller>>& callers() const { return callers_; }
  bool is_connected() const { return link_ && link_->is_connected(); }
  std::filesystem::path directory() const { return LinkDirectory::path_of(root_, kSandbox); }
  // How many bytes of orders it gave to guests.
  std::size_t bytes_ordered() const { return bytes_ordered_; }

  void start(unsigned times, unsigned refusals) {
    limits_ = {};
    LinkLimits& limits = limits_;
    limits.handshake = (times & 1U) != 0 ? kNow : kNever;
    limits.preparation = (times & 2U) != 0 ? kNow : kNever;
    limits.penalty = (times & 4U) != 0 ? kNever : kNow;
    limits.between_connections = (refusals & 1U) != 0 ? kNever : kNow;
    if ((refusals & 1U) != 0) limits.connections_at_once = 1;
    if ((refusals & 2U) != 0) limits.unproven_connections = 1;
    is_users_guest_ = (refusals & 4U) == 0;
    limits.guest_uid = ::geteuid() + (is_users_guest_ ? 0 : 1);
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
  }
  void remove_directory() const {
    AGBOX_CHECK(LinkDirectory::remove(directory()), "a link's directory can be removed");
  }

  void perform(const Step& step) {
    const auto [first, second, third] = step.arguments;
    switch (step.letter) {
      case 'M':
        return make();
      case 'A':
        return adopt(first % 2 == 0);
      case 'R':
        return close();
      case 'Z':
        close();
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
        if (link_ && link_->cancel_exec(exec_name(first), kNow)) {
          promises_.exec_ordered(exec_name(first));
        }
        return;
      case 'F':
        return forget_exec(exec_name(first));
      case 'I':
        return attach_input(exec_name(first), second);
      case 'J':
        return order_about(exec_name(first), second);
      case 'S':
        if (link_) static_cast<void>(link_->stop());  // refused if no guest is connected
        return;
      case 'D':
        if (!link_) return;
        link_->container_may_have_ended();
        return promises_.may_have_ended();
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

  void guest_connected(const GuestHello& hello) override {
    promises_.connected(hello);
    handler_(EventKind::Connected);
  }
  void guest_lost(const std::string& why) override {
    promises_.lost(why);
    handler_(EventKind::Lost);
  }
  void exec_ended(const ExecEnd& end) override {
    promises_.exec_ended(end);
    handler_(EventKind::ExecEnded);
  }
  void exec_not_sent(const std::string&, const std::string& why) override { die(why); }
  void exec_truncated(const std::string& exec_id) override {
    promises_.exec_truncated(exec_id);
    handler_(EventKind::ExecTruncated);
  }

  boost::asio::awaitable<void> shut_down() {
    close();
    co_await conversations_.join();
    has_shut_down_ = true;
  }

  void make() {
    auto made = LinkDirectory::make(root_, kSandbox);
    AGBOX_CHECK(made, "a link's directory can be made at any time");
    identity_ = made->identity();
    open(std::move(*made));
  }
  void adopt(bool is_same) {
    DirectoryIdentity identity = identity_;
    if (!is_same) ++identity.inode;
    auto adopted = LinkDirectory::adopt(root_, kSandbox, identity);
    if (!adopted) return;
    AGBOX_CHECK(is_same, "another directory is not adopted");
    open(std::move(*adopted));
  }
  void open(LinkDirectory directory) {
    close();
    link_ = std::make_shared<GuestLink>(executor_, std::move(directory), limits_, *this,
                                        conversations_, Logger());
  }
  void close() {
    if (const auto former = std::exchange(link_, nullptr)) former->close();
    promises_.link_ended();
  }

  void expect(unsigned secret, unsigned process) {
    Expectation expectation;
    if (secret % 3 == 1) expectation.secret = new_secret();
    if (secret % 3 == 2 && !last_secret_.empty()) expectation.secret = last_secret_;
    if (process % 3 != 0) expectation.process.pid = ::getpid() + (process % 3 == 1 ? 0 : 1);
    const std::optional<std::string> expected = expectation.secret;
    // Before the call: it may fail to listen, and has forgotten the last start all the same.
    if (!link_) return;
    promises_.expected(expected, is_users_guest_ && process % 3 != 2);
    AGBOX_CHECK(link_->expect(std::move(expectation)), "a link can listen");
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
    const bool is_said = link_ && link_->go(order);
    AGBOX_CHECK(!is_said || is_possible, "go is for a connected guest, with its start's secret");
    // Also if it failed: a part of it may have got to the guest.
    if (is_possible && !promises_.secret()) promises_.secret_handed_out(order.secret);
  }

  void start_exec(const std::string& exec_id, unsigned kind) {
    ExecOrder order;
    order.exec_id = exec_id;
    order.command = {text(kind == 1 ? kLargeOrder : kind == 2 ? kTooLargeExec : 0)};
    order.output_limit_bytes = ++orders_;  // to be found again on the other side
    OutputFiles files;
    files.out = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (kind != 3) files.err = UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!link_) return;
    const bool is_refused =
        !files.err || order.command[0].size() == kTooLargeExec || !link_->takes_execs();
    if (!link_->start_exec(order, std::move(files))) return;
    AGBOX_CHECK(!is_refused, "an order that cannot be is refused");
    promises_.exec_started(exec_id, orders_);
  }
  void forget_exec(const std::string& exec_id) {
    if (link_ && link_->forget_exec(exec_id)) promises_.exec_forgotten(exec_id);
  }
  void attach_input(const std::string& exec_id, unsigned deadline) {
    if (!link_) return;
    UniqueFd pipe(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto id = link_->attach_input(exec_id, std::move(pipe));
    if (!id) return;
    promises_.exec_ordered(exec_id);
    call(Caller::Kind::Input, deadline, *id);
  }
  void order_about(const std::string& exec_id, unsigned kind) {
    if (!link_) return;
    const auto sent = kind % 3 == 0   ? link_->end_input(exec_id)
                      : kind % 3 == 1 ? link_->resize_terminal(exec_id, {.rows = 1, .columns = 1})
                                      : link_->signal_exec(exec_id, 1);
    if (sent) promises_.exec_ordered(exec_id);
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

  void call(Caller::Kind kind, unsigned deadline, std::uint64_t id = 0) {
    if (callers_.size() >= kMaxCallers) return;
    auto caller = std::make_shared<Caller>();
    caller->kind = kind;
    caller->id = id;
    caller->is_late = deadline % 2 == 1;
    callers_.push_back(caller);
    caller->task = waiting_.spawn("caller", wait(caller));
  }
  boost::asio::awaitable<void> wait(std::shared_ptr<Caller> caller) {
    promises_.begins(*caller);
    const auto link = link_;
    if (!link) {
      caller->is_answered = true;
      co_return;
    }
    const auto limit = caller->is_late ? kNow : kNever;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    switch (caller->kind) {
      case Caller::Kind::Hello:
        co_return promises_.answered(*caller, co_await link->hello(deadline));
      case Caller::Kind::Entrypoint:
        co_return promises_.answered(*caller, co_await link->entrypoint(deadline));
      case Caller::Kind::Ping:
        co_return promises_.answered(*caller, co_await link->ping(limit));
      case Caller::Kind::Input:
        co_return promises_.answered(*caller, co_await link->input_report(caller->id, deadline));
      case Caller::Kind::Probe: {
        // The link adds time for a guest that answers late.
        const ProbeTarget target{
            .address = {0x0A630001}, .port = 1, .limit = limit - std::chrono::minutes(1)};
        co_return promises_.answered(*caller, co_await link->probe(target));
      }
    }
  }
  void cancel(unsigned index) {
    for (const auto& caller : callers_) {
      if (caller->is_answered || index-- > 0) continue;
      caller->is_cancelled = true;
      return caller->task->cancel();
    }
  }

  boost::asio::any_io_executor executor_;
  std::filesystem::path root_;
  Promises& promises_;
  Handler handler_;
  LinkLimits limits_;
  std::shared_ptr<GuestLink> link_;
  bool is_users_guest_ = true;
  bool has_shut_down_ = false;
  DirectoryIdentity identity_;
  std::string last_secret_;
  unsigned secrets_ = 0;
  std::uint64_t orders_ = 0;
  std::size_t bytes_ordered_ = 0;
  std::vector<std::shared_ptr<Caller>> callers_;
  TaskGroup conversations_;
  TaskGroup waiting_;
};

}  // namespace agbox::guestlink
