// SPDX-License-Identifier: Apache-2.0
#include "base/file_io.h"

#include <unistd.h>

#include <array>
#include <cerrno>

namespace agbox {

std::expected<std::string, int> read_all(int fd, std::size_t limit) {
  std::string text;
  std::array<char, 65536> chunk;
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(errno);
    if (got == 0) return text;
    if (static_cast<std::size_t>(got) > limit - text.size()) return std::unexpected(EFBIG);
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

int write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace agbox
