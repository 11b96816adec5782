// SPDX-License-Identifier: Apache-2.0
// Frames of the guest link: a 4-byte little-endian length, then the message. Used by both ends;
// neither trusts the other.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace agbox::guestwire {

inline constexpr std::size_t kFrameHeader = 4;
// An exec's command line and environment: at most 6 MiB by the kernel, 4 MiB by the API.
inline constexpr std::size_t kMaxFrameToGuest = (std::size_t{4} << 20) + (std::size_t{64} << 10);
inline constexpr std::size_t kMaxFrameToDaemon = std::size_t{1} << 20;
// Enough for a hello, which may carry a failure with its output, before the peer is authenticated.
inline constexpr std::size_t kMaxUnprovenFrame = std::size_t{16} << 10;

// Prepends the length.
std::string frame(std::string_view message);
inline std::string frame(const google::protobuf::MessageLite& message) {
  return frame(std::string_view(message.SerializeAsString()));
}

// Splits a byte stream into frames. Buffers at most one incomplete frame, and never allocates by an
// announced length.
class FrameReader {
 public:
  explicit FrameReader(std::size_t limit) : limit_(limit) {}

  // Longer frames break the stream. May be raised once the peer is authenticated.
  void set_limit(std::size_t limit) { limit_ = limit; }

  void feed(std::string_view bytes);
  // The next complete frame; nullopt if more bytes are needed or the stream is broken().
  std::optional<std::string> next();
  // An empty or oversized frame was announced: nothing more can be read.
  bool broken() const { return broken_; }
  // No part of a further frame has arrived.
  bool is_between_frames() const { return taken_ == buffer_.size(); }

 private:
  std::size_t limit_;
  std::string buffer_;
  std::size_t taken_ = 0;  // bytes at the front of the buffer already returned
  bool broken_ = false;
};

}  // namespace agbox::guestwire
