// SPDX-License-Identifier: Apache-2.0
// The part of a guest's link that handles the input of execs: pipes for it, its end, and what else
// concerns terminals.
#include "async/cancellation.h"
#include "guestlink/guest_link.h"
#include "guestlink/orders.h"
#include "model/reasons.h"

namespace agbox::guestlink {
namespace {

namespace v1 = guest::v1;

// That a guest has not reported yet; one that reports none must not make the list grow.
constexpr std::size_t kMaxInputs = 64;

}  // namespace

Result<std::uint64_t> GuestLink::attach_input(const std::string& exec_id, UniqueFd pipe) {
  AGBOX_TRY_VOID(takes_execs());
  if (!execs_.contains(exec_id)) return std::unexpected(exec_not_found(exec_id));
  if (inputs_.size() >= kMaxInputs) {
    return fail(reason::kResourceExhausted, "the sandbox has not taken the input of " +
                                                std::to_string(kMaxInputs) +
                                                " clients yet; try again when it answers");
  }
  const std::uint64_t id = next_input_++;
  v1::ToGuest message;
  message.mutable_attach_input()->set_exec_id(exec_id);
  message.mutable_attach_input()->set_id(id);
  Connection::HandOver with;
  with.descriptors.push_back(std::move(pipe));
  with.what = "the pipe of its input";
  with.on_refused = [weak = weak_from_this(), id](const std::string& why) {
    const auto self = weak.lock();
    if (!self || !self->inputs_.contains(id)) return;
    self->take_input_report(id, {.outcome = InputReport::Outcome::Failed, .detail = why});
  };
  inputs_[id];
  if (guest_->send(message, std::move(with))) return id;
  inputs_.erase(id);
  return not_connected();
}

asio::awaitable<GuestResult<InputReport>> GuestLink::input_report(std::uint64_t id,
                                                                  Deadline deadline) {
  const auto self = shared_from_this();
  const auto is_lost = [&] { return !inputs_.contains(id); };
  const auto over = [&] { return is_lost() || inputs_[id].report; };
  const bool ended = co_await changed_.wait(over, deadline);
  if (is_lost()) co_return not_connected();
  if (inputs_[id].report) co_return *inputs_.extract(id).mapped().report;
  // It stays in the list, because its report may still come.
  inputs_[id].is_awaited = false;
  if (!ended && co_await is_cancelled()) co_return cancelled();
  co_return guest_fail(GuestErrorKind::Silent,
                       "the sandbox does not take input: it has not answered in time");
}

bool GuestLink::on_input_attached(Connection& connection, const v1::InputAttached& attached) {
  const auto input = inputs_.find(attached.id());
  auto report = to_input_report(attached);
  if (input == inputs_.end() || input->second.report || !report) {
    connection.violation("the report of a pipe that it was not sent, or without an outcome");
    return false;
  }
  take_input_report(attached.id(), std::move(*report));
  return true;
}

void GuestLink::take_input_report(std::uint64_t id, InputReport report) {
  if (!inputs_[id].is_awaited) {
    inputs_.erase(id);
    return;
  }
  inputs_[id].report = std::move(report);
  changed_.notify();
}

Result<> GuestLink::send_of_exec(const std::string& exec_id, const v1::ToGuest& message) {
  AGBOX_TRY_VOID(takes_execs());
  if (!execs_.contains(exec_id)) return std::unexpected(exec_not_found(exec_id));
  if (!guest_->send(message)) return not_connected();
  return {};
}

Result<> GuestLink::end_input(const std::string& exec_id) {
  v1::ToGuest message;
  message.mutable_end_input()->set_exec_id(exec_id);
  return send_of_exec(exec_id, message);
}

Result<> GuestLink::resize_terminal(const std::string& exec_id, TerminalSize size) {
  v1::ToGuest message;
  message.mutable_resize_terminal()->set_exec_id(exec_id);
  fill(*message.mutable_resize_terminal()->mutable_size(), size);
  return send_of_exec(exec_id, message);
}

Result<> GuestLink::signal_exec(const std::string& exec_id, int number) {
  v1::ToGuest message;
  message.mutable_signal_exec()->set_exec_id(exec_id);
  message.mutable_signal_exec()->set_number(static_cast<std::uint32_t>(number));
  return send_of_exec(exec_id, message);
}

}  // namespace agbox::guestlink
