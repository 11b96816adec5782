// SPDX-License-Identifier: Apache-2.0
// One connection of a guest: frames in, frames out, everything bounded. GuestLink interprets the
// messages.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "async/task_group.h"
#include "base/unique_fd.h"
#include "guestlink/peer.h"
#include "guestwire/frame.h"

namespace agbox::guestlink {

namespace asio = boost::asio;

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = asio::local::stream_protocol::socket;
  static constexpr std::size_t kMaxDescriptors = 2;  // of one message

  // `hand_over` is how long the kernel may refuse to send descriptors.
  Connection(Socket socket, Peer peer, std::chrono::milliseconds hand_over, TaskGroup& tasks);

  const Peer& peer() const { return peer_; }

  // The next message; nullopt if the connection has ended, see `problem()`.
  asio::awaitable<std::optional<guest::v1::ToDaemon>> read();
  const std::string& problem() const { return problem_; }
  // The guest violated the protocol.
  bool misbehaved() const { return misbehaved_; }

  // Descriptors that go with a message.
  struct HandOver {
    std::vector<UniqueFd> descriptors;
    std::string what;  // they are, for people
    // Called if the kernel keeps refusing to send them: the message was dropped and never arrives.
    std::function<void(const std::string& why)> on_refused;
  };
  // Messages are sent in order; the descriptors arrive with the first byte of the message. They are
  // closed once they are sent, and when the connection ends. False if it has ended.
  bool send(const guest::v1::ToGuest& message, HandOver with = {});
  // False for a guest that does not read: further orders would only use memory.
  bool can_take_orders() const;

  // Closes the connection unless it is lifted in time.
  void limit_time(std::chrono::milliseconds time);
  void lift_limits();

  void violation(std::string what);
  void close(std::string why);

 private:
  struct Outgoing {
    std::string bytes;
    std::size_t sent = 0;
    HandOver with;
    std::chrono::steady_clock::time_point queued_at;
  };
  enum class Flush { Done, GuestMustRead, KernelIsFull };

  boost::system::error_code take_what_came();
  Flush flush();
  void drop_refused();
  asio::awaitable<void> write(std::shared_ptr<Connection> self);

  Socket socket_;
  Peer peer_;
  std::chrono::milliseconds hand_over_;
  TaskGroup& tasks_;
  asio::steady_timer limit_;
  guestwire::FrameReader reader_{guestwire::kMaxUnprovenFrame};
  std::deque<Outgoing> unsent_;
  std::size_t unsent_bytes_ = 0;
  // Since when the kernel refuses the first unsent message.
  std::optional<std::chrono::steady_clock::time_point> refused_since_;
  bool writing_ = false;
  bool closed_ = false;
  bool misbehaved_ = false;
  std::string problem_;
};

}  // namespace agbox::guestlink
