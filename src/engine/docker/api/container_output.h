// SPDX-License-Identifier: Apache-2.0
// Demultiplexes the engine's output stream, in which each frame has an 8-byte header: stream
// number, three zeros, length. Bounded: keeps the last bytes of each stream.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/engine_error.h"

namespace agbox {

struct ContainerOutput {
  std::string standard_output{};
  std::string standard_error{};
  bool was_cut = false;  // the beginning of a stream is missing
};

class OutputDemultiplexer {
 public:
  explicit OutputDemultiplexer(std::size_t kept_per_stream) : kept_(kept_per_stream) {}

  EngineResult<> feed(std::string_view piece);
  // At the end of the stream; Unavailable if it ended within a frame.
  EngineResult<ContainerOutput> finish();

 private:
  void keep(std::string& stream, std::string_view piece);

  std::size_t kept_;
  ContainerOutput output_;
  std::array<unsigned char, 8> head_{};
  std::size_t head_length_ = 0;
  std::uint32_t left_in_piece_ = 0;
};

}  // namespace agbox
