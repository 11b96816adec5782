// SPDX-License-Identifier: Apache-2.0
// The part of a guest's link that handles copies into and out of the running container.
#include <chrono>

#include "async/cancellation.h"
#include "guestlink/guest_link.h"
#include "guestlink/orders.h"
#include "guestwire/place.h"
#include "model/spec/maxima.h"

namespace agbox::guestlink {
namespace {

namespace v1 = guest::v1;

}  // namespace

GuestResult<std::uint64_t> GuestLink::transfer_files(const FileOrder& order, UniqueFd pipe) {
  if (!is_connected()) return not_connected();
  if (!gone_) return guest_fail(GuestErrorKind::Refused, "the guest has not got Go yet");
  if (hello_->protocol < guestwire::kProtocolWithFiles) {
    return guest_fail(GuestErrorKind::Refused,
                      "the sandbox was created by an older agboxd, and its guest cannot copy "
                      "files while it runs; create it again");
  }
  if (files_.size() >= maxima::kFileCopiesPerSandbox || !guest_->can_take_orders()) {
    return guest_fail(GuestErrorKind::Refused,
                      "the guest does not read its orders; try again when the sandbox answers");
  }
  const std::uint64_t id = next_files_++;
  std::vector<UniqueFd> descriptors;
  descriptors.push_back(std::move(pipe));
  files_[id];
  const auto on_refused = [weak = weak_from_this(), id](const std::string& why) {
    const auto self = weak.lock();
    if (!self || !self->files_.contains(id)) return;
    self->files_[id] = FilesReport{.failure = Error(reason::kResourceExhausted, why)};
    self->changed_.notify();
  };
  if (guest_->send(files_for(id, order), {.descriptors = std::move(descriptors),
                                          .what = "the pipe of the copy",
                                          .on_refused = on_refused})) {
    return id;
  }
  files_.erase(id);
  return not_connected();
}

asio::awaitable<GuestResult<FilesReport>> GuestLink::files_report(std::uint64_t id) {
  const auto self = shared_from_this();
  const auto is_lost = [&] { return !files_.contains(id); };
  const auto over = [&] { return is_lost() || files_[id]; };
  co_await changed_.wait(over, Deadline::max());
  if (is_lost()) co_return not_connected();
  const auto report = files_.extract(id).mapped();
  if (report) co_return *report;
  // Cancelled. Its report is still to come, and is ignored then.
  v1::ToGuest message;
  message.mutable_cancel_files()->set_id(id);
  if (guest_) guest_->send(message);
  co_return cancelled();
}

bool GuestLink::on_files_done(Connection& connection, const v1::FilesDone& done) {
  const auto files = files_.find(done.id());
  // One that was cancelled is still reported.
  if (done.id() == 0 || done.id() >= next_files_ || (files != files_.end() && files->second)) {
    connection.violation("the report of a copy that it was not to make");
    return false;
  }
  if (files == files_.end()) return true;
  files->second = to_files_report(done);
  changed_.notify();
  return true;
}

}  // namespace agbox::guestlink
