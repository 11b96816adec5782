// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/container_output.h"

#include <algorithm>
#include <utility>

namespace agbox {

EngineResult<> OutputDemultiplexer::feed(std::string_view piece) {
  while (!piece.empty()) {
    if (left_in_piece_ == 0) {
      head_[head_length_++] = static_cast<unsigned char>(piece.front());
      piece.remove_prefix(1);
      if (head_length_ < head_.size()) continue;
      if (head_[0] > 2 || head_[1] != 0 || head_[2] != 0 || head_[3] != 0) {
        return engine_fail(EngineErrorKind::Garbled,
                           "the engine's output stream is not in its own format");
      }
      left_in_piece_ = static_cast<std::uint32_t>(head_[4]) << 24 |
                       static_cast<std::uint32_t>(head_[5]) << 16 |
                       static_cast<std::uint32_t>(head_[6]) << 8 | head_[7];
      head_length_ = 0;
      continue;
    }
    const std::size_t length = std::min<std::size_t>(left_in_piece_, piece.size());
    keep(head_[0] == 2 ? output_.standard_error : output_.standard_output, piece.substr(0, length));
    left_in_piece_ -= static_cast<std::uint32_t>(length);
    piece.remove_prefix(length);
  }
  return {};
}

EngineResult<ContainerOutput> OutputDemultiplexer::finish() {
  if (head_length_ != 0 || left_in_piece_ != 0) {
    return engine_fail(EngineErrorKind::Unavailable, "the engine's output stream broke off");
  }
  for (std::string* stream : {&output_.standard_output, &output_.standard_error}) {
    if (stream->size() <= kept_) continue;
    stream->erase(0, stream->size() - kept_);
    output_.was_cut = true;
  }
  return std::move(output_);
}

void OutputDemultiplexer::keep(std::string& stream, std::string_view piece) {
  stream += piece;
  // Cutting only at twice the size keeps the cost per byte constant.
  if (stream.size() <= kept_ * 2 + 4096) return;
  stream.erase(0, stream.size() - kept_);
  output_.was_cut = true;
}

}  // namespace agbox
