// SPDX-License-Identifier: Apache-2.0
// One connection to the daemon: frames in both directions, and the descriptors that come with some
// of them. Ends by being broken; whoever owns it throws it away then.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agbox/guest/v1/link.pb.h"
#include "base/unique_fd.h"
#include "guestwire/frame.h"

namespace agbox::guest {

class MessageSocket {
 public:
  using DescriptorPair = std::pair<UniqueFd, UniqueFd>;

  explicit MessageSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  bool is_broken() const { return broken_; }
  bool has_unsent() const { return !unsent_.empty(); }

  void send(const v1::ToDaemon& message);
  void write_some();
  // Calls `on_message` for each that is whole; false breaks the connection.
  void read_some(const std::function<bool(v1::ToGuest&)>& on_message);

  // Those of the message that is being handled; nothing where none came with it. A pair that could
  // not be received whole, because this process has all the descriptors it may have, holds none.
  std::optional<DescriptorPair> take_descriptors();

 private:
  bool handle_frames(const std::function<bool(v1::ToGuest&)>& on_message);

  UniqueFd socket_;
  guestwire::FrameReader reader_{guestwire::kMaxFrameToGuest};
  std::string unsent_;
  // They come with the first byte of their message, and one call receives one pair at most. So
  // there are never more than two: of a message that has just become whole, and of the next.
  std::vector<DescriptorPair> descriptors_;
  bool broken_ = false;
};

}  // namespace agbox::guest
