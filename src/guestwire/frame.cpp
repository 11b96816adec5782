// SPDX-License-Identifier: Apache-2.0
#include "guestwire/frame.h"

#include <algorithm>

#include "base/check.h"

namespace agbox::guestwire {

std::string frame(std::string_view message) {
  AGBOX_CHECK(!message.empty() && message.size() <= std::max(kMaxFrameToGuest, kMaxFrameToDaemon),
              "own frames are within bounds");
  const auto length = static_cast<std::uint32_t>(message.size());
  std::string bytes;
  bytes.reserve(kFrameHeader + message.size());
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
  bytes += message;
  return bytes;
}

void FrameReader::feed(std::string_view bytes) {
  if (broken_) return;
  buffer_.erase(0, taken_);
  taken_ = 0;
  buffer_.append(bytes);
}

std::optional<std::string> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  if (broken_ || rest.size() < kFrameHeader) return std::nullopt;
  std::uint32_t length = 0;
  for (unsigned i = 0; i < kFrameHeader; ++i) {
    length |= std::uint32_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  }
  if (length == 0 || length > limit_) {
    broken_ = true;
    std::string().swap(buffer_);
    taken_ = 0;
    return std::nullopt;
  }
  if (rest.size() - kFrameHeader < length) return std::nullopt;
  std::string message(rest.substr(kFrameHeader, length));
  taken_ += kFrameHeader + length;
  if (taken_ == buffer_.size()) {
    std::string().swap(buffer_);  // the daemon runs for weeks: clear() would keep the memory
    taken_ = 0;
  }
  return message;
}

}  // namespace agbox::guestwire
