// SPDX-License-Identifier: Apache-2.0
#include "base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace agbox {

std::optional<std::string> read_text_file(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO without writer reads as empty instead of blocking.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::nullopt;
  std::string text;
  std::array<char, 4096> part{};
  while (true) {
    const ssize_t length = ::read(fd.get(), part.data(), part.size());
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::nullopt;
    if (length == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(length));
  }
}

}  // namespace agbox
