// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.h"

#include <fcntl.h>

#include <cstdint>
#include <utility>

#include "base/file_io.h"
#include "base/unique_fd.h"

namespace agbox {

std::optional<std::string> read_text_file(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO without writer reads as empty instead of blocking.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  auto text = read_all(fd.get(), SIZE_MAX);
  return text ? std::optional(std::move(*text)) : std::nullopt;
}

}  // namespace agbox
