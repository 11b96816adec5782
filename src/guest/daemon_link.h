// SPDX-License-Identifier: Apache-2.0
// The guest's end of the link: finds the daemon's socket, exchanges frames, and reconnects after
// the daemon was unreachable. It only transports the handshake; Init interprets it.
#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <optional>

#include "agbox/guest/v1/link.pb.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "guest/message_socket.h"
#include "guest/watch.h"

namespace agbox::guest {

class DaemonLink {
 public:
  struct Handlers {
    std::function<v1::Hello()> hello;              // the first message of a connection
    std::function<bool(v1::ToGuest&)> on_message;  // false closes this connection
  };

  // Opens the directory before any user code runs, so that nothing inside can substitute another
  // one.
  static Result<DaemonLink> open(const char* directory, Handlers handlers);

  void collect(Watches& watches);
  // Dropped if not connected: the next hello reports our state.
  bool is_connected() const { return socket_.has_value(); }
  void send(const v1::ToDaemon& message);
  // The daemon accepted us, and has our reply: reconnect without delay after the next loss.
  void accepted();
  // See MessageSocket.
  std::optional<MessageSocket::DescriptorPair> take_descriptors();

 private:
  DaemonLink(UniqueFd directory, uid_t owner, gid_t group, Handlers handlers);

  void try_connect();  // if it fails, waits for the socket to appear, or for space in its queue
  std::expected<UniqueFd, int> connect() const;  // or errno
  std::chrono::milliseconds delay_after(int problem);
  void watch_directory();
  void on_lost();

  UniqueFd directory_;
  uid_t owner_;  // of the directory: the daemon's user, the only one with access
  gid_t group_;
  Handlers handlers_;

  std::optional<MessageSocket> socket_;

  // While no daemon has accepted us: instances per user are limited.
  UniqueFd inotify_;
  Moment next_try_;
  int refusals_ = 0;     // consecutive connections that ended before the daemon accepted us
  int full_queues_ = 0;  // consecutive attempts that found the socket's queue full
};

}  // namespace agbox::guest
