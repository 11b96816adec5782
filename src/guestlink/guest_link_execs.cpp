// SPDX-License-Identifier: Apache-2.0
// The part of a guest's link that handles execs: those that the guest has on connect, orders to the
// guest, and its reports.
#include "guestlink/guest_link.h"
#include "guestlink/orders.h"
#include "guestwire/frame.h"
#include "model/ids.h"
#include "model/reasons.h"

namespace agbox::guestlink {
namespace {

namespace v1 = guest::v1;

// Of the execs that a guest has on connect; many more than one sandbox may run.
constexpr int kMaxKnownMessages = 64;
constexpr std::size_t kMaxKnownExecs = 16384;

std::unexpected<Error> not_given(const std::string& exec_id) {
  return fail(reason::kExecNotFound, "the guest does not have exec " + exec_id);
}

}  // namespace

asio::awaitable<bool> GuestLink::read_known_execs(std::shared_ptr<Connection> connection,
                                                  std::vector<std::string>& execs) {
  execs_.clear();
  for (int messages = 0; messages < kMaxKnownMessages; ++messages) {
    const auto message = co_await connection->read();
    if (!message || guest_ != connection) co_return false;
    if (!message->has_execs_known()) {
      connection->violation("something other than the execs that it knows");
      co_return false;
    }
    for (const std::string& exec_id : message->execs_known().exec_ids()) {
      // Before go() a guest gets no execs, so it cannot have any.
      if (!gone_ || execs_.size() == kMaxKnownExecs || !check_id("exec_id", exec_id) ||
          !execs_.add(exec_id)) {
        connection->violation("a list of execs that cannot be");
        co_return false;
      }
      execs.push_back(exec_id);
    }
    if (!message->execs_known().more()) co_return true;
  }
  connection->violation("an endless list of execs");
  co_return false;
}

Result<> GuestLink::takes_execs() const {
  if (!is_connected()) return not_connected();
  if (!gone_) return fail(reason::kSandboxNotReady, "the guest has not got Go yet");
  if (!guest_->can_take_orders()) {
    return fail(reason::kResourceExhausted,
                "the guest does not read its orders: too many are waiting for it; try again when "
                "the sandbox answers");
  }
  return {};
}

Result<> GuestLink::start_exec(const ExecOrder& order, OutputFiles files) {
  AGBOX_TRY_VOID(takes_execs());
  AGBOX_TRY_VOID(check_id("exec_id", order.exec_id));
  if (!files.out || !files.err) {
    return fail(reason::kInternal, "exec " + order.exec_id + " has no files for its output");
  }
  const v1::ToGuest message = start_for(order, files.free_space_reserve_bytes);
  if (message.ByteSizeLong() > guestwire::kMaxFrameToGuest) {
    return fail(reason::kInvalidArgument,
                "command: longer than 4 MiB together with the environment");
  }
  if (!execs_.add(order.exec_id)) {
    return fail(reason::kInternal, "the guest has exec " + order.exec_id + " already");
  }
  Connection::HandOver with;
  with.descriptors.push_back(std::move(files.out));
  with.descriptors.push_back(std::move(files.err));
  with.what = "its output files";
  with.on_refused = [weak = weak_from_this(), exec_id = order.exec_id](const std::string& why) {
    if (const auto self = weak.lock()) self->on_exec_refused(exec_id, why);
  };
  if (!guest_->send(message, std::move(with))) return not_connected();
  return {};
}

Result<> GuestLink::cancel_exec(const std::string& exec_id, std::chrono::milliseconds grace) {
  if (!is_connected()) return not_connected();
  if (!execs_.contains(exec_id)) return not_given(exec_id);
  v1::ToGuest message;
  message.mutable_cancel_exec()->set_exec_id(exec_id);
  message.mutable_cancel_exec()->set_grace_ms(static_cast<std::uint32_t>(grace.count()));
  if (!guest_->send(message)) return not_connected();
  return {};
}

Result<> GuestLink::forget_exec(const std::string& exec_id) {
  if (!is_connected()) return not_connected();
  if (!execs_.forget(exec_id)) return not_given(exec_id);
  v1::ToGuest message;
  message.mutable_forget_exec()->set_exec_id(exec_id);
  if (!guest_->send(message)) return not_connected();
  return {};
}

// A cancel that follows in the queue finds no such exec, which is no error for a guest.
void GuestLink::on_exec_refused(const std::string& exec_id, const std::string& why) {
  execs_.remove(exec_id);
  listener_.exec_not_sent(exec_id, why);
}

bool GuestLink::on_exec_ended(Connection& connection, const v1::ExecEnded& ended) {
  const auto verdict = execs_.ended(ended.exec_id());
  const auto end = to_exec_end(ended);
  if (verdict == KnownExecs::Verdict::Violation || !end) {
    connection.violation(end ? "the end of an exec that it does not have"
                             : "the end of an exec without how it ended");
    return false;
  }
  if (verdict == KnownExecs::Verdict::Accepted) listener_.exec_ended(*end);
  return true;
}

bool GuestLink::on_exec_truncated(Connection& connection, const std::string& exec_id) {
  const auto verdict = execs_.truncated(exec_id);
  if (verdict == KnownExecs::Verdict::Violation) {
    connection.violation("truncated output of an exec that it does not have");
    return false;
  }
  if (verdict == KnownExecs::Verdict::Accepted) listener_.exec_truncated(exec_id);
  return true;
}

}  // namespace agbox::guestlink
