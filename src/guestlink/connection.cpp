// SPDX-License-Identifier: Apache-2.0
#include "guestlink/connection.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "async/await.h"

namespace agbox::guestlink {
namespace {

namespace asio = boost::asio;
// A guest reads at once; this much waiting means that it does not read at all.
constexpr std::size_t kMaxUnsent = 4 * guestwire::kMaxFrame;

}  // namespace

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
    std::array<char, 16384> chunk;
    const auto [problem, got] = co_await socket_.async_read_some(asio::buffer(chunk), kAwait);
    if (problem) {
      close(problem == asio::error::eof ? "the guest closed it" : problem.message());
      break;
    }
    reader_.feed({chunk.data(), got});
  }
  co_return std::nullopt;
}

bool Connection::send(const guest::v1::ToGuest& message) {
  if (closed_) return false;
  unsent_ += guestwire::frame(message);
  if (unsent_.size() > kMaxUnsent) {
    close("the guest does not read");
    return false;
  }
  if (!writing_) {
    writing_ = true;
    tasks_.spawn("guest link write", write(shared_from_this()));
  }
  return true;
}

asio::awaitable<void> Connection::write(std::shared_ptr<Connection> self) {
  while (!closed_ && !unsent_.empty()) {
    const std::string bytes = std::exchange(unsent_, {});
    const auto [problem, sent] = co_await asio::async_write(socket_, asio::buffer(bytes), kAwait);
    if (problem) close(problem.message());
  }
  writing_ = false;
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
  reader_.set_limit(guestwire::kMaxFrame);
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
  boost::system::error_code ignored;  // there is nothing to do about a close that fails
  socket_.close(ignored);
}

}  // namespace agbox::guestlink
