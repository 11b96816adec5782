// SPDX-License-Identifier: Apache-2.0
#include "guestlink/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>

#include "async/await.h"
#include "base/check.h"
#include "base/kernel_budget.h"
#include "base/send_descriptors.h"

namespace agbox::guestlink {
namespace {

// A guest reads immediately: this many unsent bytes mean that it does not read at all, or gets
// orders faster than a stopped or starved container can take them.
constexpr std::size_t kMaxUnsentForOrders = std::size_t{16} << 20;
constexpr std::size_t kMaxUnsentFrames = 1024;  // each order holds two of the daemon's descriptors
// The rest is reserved for small messages about execs and for a last order.
constexpr std::size_t kMaxUnsent = 2 * kMaxUnsentForOrders;

ssize_t send_some(int socket, std::string_view bytes, const std::vector<UniqueFd>& descriptors) {
  std::array<int, Connection::kMaxDescriptors> numbers{};
  std::ranges::transform(descriptors, numbers.begin(), &UniqueFd::get);
  return send_with_descriptors(socket, bytes, std::span(numbers).first(descriptors.size()));
}

}  // namespace

Connection::Connection(Socket socket, Peer peer, std::chrono::milliseconds hand_over,
                       TaskGroup& tasks)
    : socket_(std::move(socket)),
      peer_(peer),
      hand_over_(hand_over),
      tasks_(tasks),
      limit_(socket_.get_executor()) {
  socket_.non_blocking(true);
}

asio::awaitable<std::optional<guest::v1::ToDaemon>> Connection::read() {
  const auto self = shared_from_this();
  while (!closed_) {
    if (const auto bytes = reader_.next()) {
      guest::v1::ToDaemon message;
      if (message.ParseFromString(*bytes)) co_return message;
      violation("a frame that cannot be read");
      break;
    }
    if (reader_.broken()) {
      violation("a frame that is empty or too long");
      break;
    }
    auto problem = take_what_came();
    if (problem == asio::error::would_block) {
      std::tie(problem) = co_await socket_.async_wait(Socket::wait_read, kAwait);
    }
    if (problem) close(problem == asio::error::eof ? "the guest closed it" : problem.message());
  }
  co_return std::nullopt;
}

// Not in read(), which would keep the buffer while it waits: most guests are silent.
boost::system::error_code Connection::take_what_came() {
  std::array<char, 16384> chunk;
  boost::system::error_code problem;
  const std::size_t got = socket_.read_some(asio::buffer(chunk), problem);
  reader_.feed({chunk.data(), got});
  return problem;
}

bool Connection::can_take_orders() const {
  return unsent_bytes_ <= kMaxUnsentForOrders && unsent_.size() < kMaxUnsentFrames;
}

bool Connection::send(const guest::v1::ToGuest& message, HandOver with) {
  AGBOX_CHECK(with.descriptors.size() <= kMaxDescriptors, "few descriptors in one message");
  if (closed_) return false;
  unsent_.push_back({.bytes = guestwire::frame(message),
                     .with = std::move(with),
                     .queued_at = std::chrono::steady_clock::now()});
  unsent_bytes_ += unsent_.back().bytes.size();
  if (unsent_bytes_ > kMaxUnsent) {
    close("the guest does not read");
    return false;
  }
  if (writing_) return true;
  if (flush() != Flush::Done) {
    writing_ = true;
    tasks_.spawn("guest link write", write(shared_from_this()));
  }
  return !closed_;
}

Connection::Flush Connection::flush() {
  while (!unsent_.empty()) {
    Outgoing& first = unsent_.front();
    const std::string_view rest = std::string_view(first.bytes).substr(first.sent);
    const ssize_t sent = send_some(socket_.native_handle(), rest, first.with.descriptors);
    if (sent < 0) {
      if (errno == EAGAIN) return Flush::GuestMustRead;
      // Too many descriptors of this user are in flight in all sockets together, or no memory.
      if (errno == ETOOMANYREFS) note_refusal(KernelBudget::DescriptorsInFlight);
      if (errno == ETOOMANYREFS || errno == ENOBUFS || errno == ENOMEM) return Flush::KernelIsFull;
      close(std::generic_category().message(errno));
      return Flush::Done;
    }
    refused_since_.reset();
    first.with.descriptors.clear();
    first.sent += static_cast<std::size_t>(sent);
    unsent_bytes_ -= static_cast<std::size_t>(sent);
    if (first.sent == first.bytes.size()) unsent_.pop_front();
  }
  return Flush::Done;
}

asio::awaitable<void> Connection::write(std::shared_ptr<Connection> self) {
  while (!closed_) {
    const Flush outcome = flush();
    if (outcome == Flush::Done) break;
    if (outcome == Flush::KernelIsFull) {  // no notification when this changes
      drop_refused();
      asio::steady_timer timer(socket_.get_executor(), std::chrono::milliseconds(100));
      co_await timer.async_wait(kAwait);
    } else {
      co_await socket_.async_wait(Socket::wait_write, kAwait);
    }
  }
  writing_ = false;
}

// Drops the messages with descriptors that have been refused for too long: others wait for them,
// and their senders for an answer. None of their bytes was sent, because the descriptors go with
// the first.
void Connection::drop_refused() {
  const auto now = std::chrono::steady_clock::now();
  if (!refused_since_) refused_since_ = now;
  while (!unsent_.empty() && !unsent_.front().with.descriptors.empty() &&
         now - std::max(*refused_since_, unsent_.front().queued_at) >= hand_over_) {
    const Outgoing dropped = std::move(unsent_.front());
    unsent_.pop_front();
    unsent_bytes_ -= dropped.bytes.size();
    const std::string why =
        "for " + std::to_string(hand_over_.count()) + " ms the kernel refused to send " +
        dropped.with.what + " to the sandbox: too many " +
        title_of(KernelBudget::DescriptorsInFlight) +
        " are used by this user, or no memory is left; agbox doctor shows by which sandbox";
    if (dropped.with.on_refused) dropped.with.on_refused(why);
  }
}

void Connection::limit_time(std::chrono::milliseconds time) {
  limit_.expires_after(time);
  limit_.async_wait([weak = weak_from_this()](boost::system::error_code cancelled) {
    const auto self = weak.lock();
    if (self && !cancelled) self->close("the guest took too long");
  });
}

void Connection::lift_limits() {
  limit_.cancel();
  reader_.set_limit(guestwire::kMaxFrameToDaemon);
}

void Connection::violation(std::string what) {
  misbehaved_ = true;
  close("the guest sent " + std::move(what));
}

void Connection::close(std::string why) {
  if (closed_) return;
  closed_ = true;
  problem_ = std::move(why);
  limit_.cancel();
  unsent_.clear();
  unsent_bytes_ = 0;
  boost::system::error_code ignored;  // a failed close cannot be handled
  socket_.close(ignored);
}

}  // namespace agbox::guestlink
