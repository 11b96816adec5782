// SPDX-License-Identifier: Apache-2.0
#include "ingress/stream_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace agbox {
namespace {

constexpr std::size_t kWriterBuffer = std::size_t{256} << 10;

std::unexpected<Error> aborted() {
  return fail(reason::kCancelled, "cancelled");
}

}  // namespace

AbortSignal::AbortSignal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!event_) throw std::system_error(errno, std::generic_category(), "create an eventfd");
}

void AbortSignal::fire() {
  is_fired_ = true;
  const std::uint64_t one = 1;
  const ssize_t written = ::write(event_.get(), &one, sizeof one);
  AGBOX_CHECK(written == sizeof one || errno == EAGAIN, "write to an eventfd");
}

StreamWriter::StreamWriter(UniqueFd pipe, const AbortSignal& abort,
                           std::chrono::milliseconds stall_limit)
    : pipe_(std::move(pipe)), abort_(abort), stall_limit_(stall_limit), buffer_(kWriterBuffer) {
  const int flags = ::fcntl(pipe_.get(), F_GETFL);
  AGBOX_CHECK(flags >= 0 && ::fcntl(pipe_.get(), F_SETFL, flags | O_NONBLOCK) == 0, "fcntl");
}

Result<std::span<char>> StreamWriter::room() {
  if (used_ == buffer_.size()) AGBOX_TRY_VOID(flush());
  return std::span(buffer_).subspan(used_);
}

Result<> StreamWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    AGBOX_TRY(space, room());
    const std::size_t size = std::min(space.size(), bytes.size());
    std::ranges::copy(bytes.substr(0, size), space.begin());
    commit(size);
    bytes.remove_prefix(size);
  }
  return {};
}

Result<> StreamWriter::flush() {
  std::size_t sent = 0;
  while (sent < used_) {
    if (abort_.is_fired()) return aborted();
    const ssize_t written = ::write(pipe_.get(), buffer_.data() + sent, used_ - sent);
    if (written >= 0) {
      sent += static_cast<std::size_t>(written);
    } else if (errno == EAGAIN) {
      AGBOX_TRY_VOID(wait_for_reader());
    } else if (errno == EPIPE) {
      return fail(reason::kReaderGone, "the reader ended");
    } else if (errno != EINTR) {
      return std::unexpected(errno_error("writing to the sandbox", errno));
    }
  }
  used_ = 0;
  return {};
}

Result<> StreamWriter::wait_for_reader() {
  std::array<pollfd, 2> polled{{{pipe_.get(), POLLOUT, 0}, {abort_.fd(), POLLIN, 0}}};
  const int ready = ::poll(polled.data(), polled.size(), static_cast<int>(stall_limit_.count()));
  if (ready < 0 && errno != EINTR) return std::unexpected(errno_error("poll", errno));
  if (polled[1].revents != 0) return aborted();
  if (ready != 0) return {};
  return fail(
      reason::kHostNotReady,
      "the sandbox took nothing for " +
          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(stall_limit_).count()) +
          " s");
}

}  // namespace agbox
