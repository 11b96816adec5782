// SPDX-License-Identifier: Apache-2.0
// One connection to the daemon: frames in both directions, and descriptors passed with some of
// them. Once broken it must be replaced.
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
  // Calls `on_message` for each complete message; false breaks the connection.
  void read_some(const std::function<bool(v1::ToGuest&)>& on_message);

  // The descriptors of the message being handled; nullopt if it had none. If it had one, it is the
  // first. If this process is out of descriptors, the pair is empty.
  std::optional<DescriptorPair> take_descriptors();

 private:
  bool handle_frames(const std::function<bool(v1::ToGuest&)>& on_message);

  UniqueFd socket_;
  guestwire::FrameReader reader_{guestwire::kMaxFrameToGuest};
  std::string unsent_;
  // They arrive with the first byte of their message, at most one pair per call. So there are at
  // most two pairs: of a just completed message, and of the next.
  std::vector<DescriptorPair> descriptors_;
  bool broken_ = false;
};

}  // namespace agbox::guest
