// SPDX-License-Identifier: Apache-2.0
// The guest's end of the link: finds the daemon's socket, speaks frames, and comes back by itself
// after the daemon was away. Knows the handshake's frames only by their being frames; what is said
// is the init's business.
#pragma once

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
  struct Talk {
    std::function<v1::Hello()> hello;              // what to open a conversation with
    std::function<bool(v1::ToGuest&)> on_message;  // false ends this connection
  };

  // Holds the folder from before anything of the user's runs, so that nothing inside can slip
  // another one under the same path.
  static Result<DaemonLink> open(const char* folder, Talk talk);

  void collect(Watches& watches);
  // Lost where nobody is connected: the next hello tells how far we are.
  void send(const v1::ToDaemon& message);
  // The daemon took us in: the next loss is not a refusal, so come back at once.
  void accepted() { refusals_ = 0; }
  // See MessageSocket.
  std::optional<MessageSocket::DescriptorPair> take_descriptors();

 private:
  DaemonLink(UniqueFd folder, uid_t owner, gid_t group, Talk talk);

  void seek();  // tries to connect; waits for the socket to appear where it cannot
  UniqueFd connect() const;
  void watch_folder();
  void lost();

  UniqueFd folder_;
  uid_t owner_;  // of the folder: the daemon's user, and the only one who may enter it
  gid_t group_;
  Talk talk_;

  std::optional<MessageSocket> socket_;

  UniqueFd inotify_;  // only while disconnected: a user has few of them
  Moment next_try_;
  int refusals_ = 0;  // connections in a row that ended before the daemon took us in
};

}  // namespace agbox::guest
