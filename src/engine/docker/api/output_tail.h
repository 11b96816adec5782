// SPDX-License-Identifier: Apache-2.0
// The end of what processes of a container printed. They are untrusted: it can be any bytes, and
// any number of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace agbox {

// Of one text, in bytes.
inline constexpr std::size_t kLongestShownOutput = 1024;

// As one line for people: the end of a long text, line breaks as \n, other control characters as
// \x1b, and what is not UTF-8 replaced.
std::string shown_output(std::string_view bytes);

// Takes the engine's stream of both outputs: frames of a header and bytes.
class OutputTail {
 public:
  void feed(std::string_view piece);
  std::string shown() const { return shown_output(kept_); }

 private:
  void keep(std::string_view bytes);

  std::array<unsigned char, 8>
      header_{};                  // which output, three zeros, and the size of what follows
  std::size_t header_bytes_ = 0;  // that have come
  std::uint32_t left_ = 0;        // of the current frame
  std::string kept_;
};

}  // namespace agbox
