// SPDX-License-Identifier: Apache-2.0
// Frames of the guest link: 4 bytes of length, little endian, then that many bytes. Both ends of
// the link use this; neither trusts the other to keep to it.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace agbox::guestwire {

inline constexpr std::size_t kFrameHeader = 4;
// An exec's command line and environment, which the kernel bounds at 6 MiB and callers at 4.
inline constexpr std::size_t kMaxFrameToGuest = (std::size_t{4} << 20) + (std::size_t{64} << 10);
inline constexpr std::size_t kMaxFrameToDaemon = std::size_t{1} << 20;
// Nobody needs more before it is known who speaks. A hello can carry a failure with its output.
inline constexpr std::size_t kMaxUnprovenFrame = std::size_t{16} << 10;

// The message with its length in front.
std::string frame(std::string_view message);
inline std::string frame(const google::protobuf::MessageLite& message) {
  return frame(std::string_view(message.SerializeAsString()));
}

// Cuts a stream of bytes into frames. Holds at most one frame that is not whole, and never
// allocates for a length that was only announced.
class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}

  // Frames longer than this end the conversation; it may grow once the other side has proven
  // itself.
  void set_limit(std::size_t limit) { limit_ = limit; }

  void feed(std::string_view bytes);
  // The next whole frame; none where more bytes are needed, or where the stream is broken().
  std::optional<std::string> next();
  // A frame was announced that is empty or longer than the limit: nothing more can be read.
  bool broken() const { return broken_; }
  // Nothing of a further frame has come yet.
  bool is_between_frames() const { return taken_ == buffer_.size(); }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t taken_ = 0;  // bytes at the front of the buffer that were given out already
  bool broken_ = false;
};

}  // namespace agbox::guestwire
