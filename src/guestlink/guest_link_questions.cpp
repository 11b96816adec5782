// SPDX-License-Identifier: Apache-2.0
// Requests that a guest answers once: pings, connection probes and trees.
#include <chrono>

#include "async/cancellation.h"
#include "guestlink/guest_link.h"
#include "guestlink/orders.h"

namespace agbox::guestlink {
namespace {

namespace v1 = guest::v1;
// More concurrent pings are not needed; a guest that answers none must not make the list grow.
constexpr std::size_t kMaxPings = 64;
constexpr std::size_t kMaxProbes = 16;
constexpr std::size_t kMaxTrees = 8;
// The guest itself ends an attempt in time and reports it; this is for a guest that does not.
constexpr std::chrono::milliseconds kProbeSlack{2000};

}  // namespace

asio::awaitable<GuestResult<>> GuestLink::ping(std::chrono::milliseconds limit) {
  const auto self = shared_from_this();
  if (!hello_ || pings_.size() >= kMaxPings) co_return not_connected();
  const auto guest = guest_;
  const std::uint64_t id = next_ping_++;
  pings_.insert(id);
  v1::ToGuest message;
  message.mutable_ping()->set_id(id);
  const auto over = [&] { return guest_ != guest || !pings_.contains(id); };
  const bool answered = guest->send(message) &&
                        co_await changed_.wait(over, std::chrono::steady_clock::now() + limit) &&
                        guest_ == guest;
  if (answered) co_return GuestResult<>{};
  if (co_await is_cancelled()) co_return cancelled();
  if (guest_ != guest) co_return not_connected();
  co_return guest_fail(GuestErrorKind::Silent,
                       "the guest did not answer within " + std::to_string(limit.count()) + " ms");
}

asio::awaitable<GuestResult<ProbeReport>> GuestLink::probe(ProbeTarget target) {
  const auto self = shared_from_this();
  if (!hello_ || probes_.size() >= kMaxProbes) co_return not_connected();
  const auto guest = guest_;
  const std::uint64_t id = next_probe_++;
  const auto report = std::make_shared<std::optional<ProbeReport>>();
  probes_[id] = report;
  const auto over = [&] { return report->has_value() || guest_ != guest; };
  const auto deadline = std::chrono::steady_clock::now() + target.limit + kProbeSlack;
  const bool sent = guest->send(probe_for(id, target));
  const bool ended = sent && co_await changed_.wait(over, deadline);
  if (*report) co_return std::move(**report);
  if (!ended && co_await is_cancelled()) co_return cancelled();
  if (!sent || guest_ != guest) co_return not_connected();
  co_return guest_fail(GuestErrorKind::Silent,
                       "the guest did not say what came of a connection that it was "
                       "asked to try to " +
                           target.address.text());
}

bool GuestLink::on_connection_tried(Connection& connection, const v1::ConnectionTried& tried) {
  const auto probe = probes_.find(tried.id());
  auto report = to_probe_report(tried);
  if (probe == probes_.end() || !report) {
    connection.violation("the end of a connection that it was not to try, or without an outcome");
    return false;
  }
  if (const auto waiting = probe->second.lock()) *waiting = std::move(report);
  probes_.erase(probe);
  changed_.notify();
  return true;
}

GuestResult<std::uint64_t> GuestLink::receive_tree(const TreeOrder& order, UniqueFd pipe) {
  if (!is_connected() || trees_.size() >= kMaxTrees) return not_connected();
  if (gone_) return guest_fail(GuestErrorKind::Refused, "the guest has got Go already");
  const std::uint64_t id = next_tree_++;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(pipe));
  trees_[id];
  const auto on_refused = [weak = weak_from_this(), id](const std::string& why) {
    const auto self = weak.lock();
    if (!self || !self->trees_.contains(id)) return;
    self->trees_[id] = TreeReport{.failure = why};
    self->changed_.notify();
  };
  if (guest_->send(receive_for(id, order), {.descriptors = std::move(descriptors),
                                            .what = "the pipe of the copy",
                                            .on_refused = on_refused})) {
    return id;
  }
  trees_.erase(id);
  return not_connected();
}

asio::awaitable<GuestResult<TreeReport>> GuestLink::tree_report(std::uint64_t id,
                                                                Deadline deadline) {
  const auto self = shared_from_this();
  const auto is_lost = [&] { return !trees_.contains(id); };
  const auto over = [&] { return is_lost() || trees_[id]; };
  const bool ended = co_await changed_.wait(over, deadline);
  if (is_lost()) co_return not_connected();
  const auto report = trees_.extract(id).mapped();
  if (report) co_return *report;
  if (!ended && co_await is_cancelled()) co_return cancelled();
  co_return guest_fail(GuestErrorKind::Silent,
                       "the guest did not report that it has unpacked a copy");
}

bool GuestLink::on_tree_received(Connection& connection, const v1::TreeReceived& received) {
  const auto tree = trees_.find(received.id());
  // One that nothing waits for any more, because its packing failed, may still be reported.
  if (received.id() == 0 || received.id() >= next_tree_ || (tree != trees_.end() && tree->second)) {
    connection.violation("the report of a tree that it was not sent");
    return false;
  }
  if (tree == trees_.end()) return true;
  tree->second = to_tree_report(received);
  changed_.notify();
  return true;
}

}  // namespace agbox::guestlink
