// SPDX-License-Identifier: Apache-2.0
// Reads a tar stream of any origin, which may be hostile: ustar, pax, the long names of GNU tar,
// and sparse files as GNU tar 1.0 and this project write them. Memory is bounded whatever the
// stream announces. What cannot be unpacked as it was packed (devices, hard links, other sparse
// formats) is an error that names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/tar/tar_entry.h"

namespace agbox {

class TarReader {
 public:
  // Reads at least one byte if there is one; 0 at the end of the stream, or an errno.
  using Source = std::function<std::expected<std::size_t, int>(std::span<char>)>;

  explicit TarReader(Source source);

  // The next entry; what is left of the one before is skipped. nullopt after the last. A stream
  // that ends without the end of the archive is an error.
  Result<std::optional<TarEntry>> next();
  // The next of the entry's stored bytes, valid until the next call; empty after the last.
  Result<std::string_view> content();

 private:
  struct Overrides;  // of the pax and GNU headers before an entry

  Result<std::string_view> block();
  Result<std::string> text(std::uint64_t size, std::string_view what);
  Result<> skip_content();
  Result<> fill();
  Result<TarEntry> entry_of(std::string_view header, const Overrides& overrides);
  Result<> read_sparse_map(TarEntry& entry);

  Source source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is in the buffer and not consumed
  std::size_t end_ = 0;
  std::uint64_t left_ = 0;   // stored bytes of the entry
  std::size_t padding_ = 0;  // after them
};

}  // namespace agbox
