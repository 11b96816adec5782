// SPDX-License-Identifier: Apache-2.0
#include "cli/format/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/unique_fd.h"

namespace agbox::cli {

std::expected<std::string, std::string> read_file(const std::filesystem::path& path,
                                                  std::size_t limit) {
  const auto failed = [](int error) {
    return std::unexpected(std::generic_category().message(error));
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return failed(errno);
  std::string text;
  std::array<char, 65536> chunk{};
  while (true) {
    const ssize_t size = ::read(fd.get(), chunk.data(), chunk.size());
    if (size == 0) return text;
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failed(errno);
    text.append(chunk.data(), static_cast<std::size_t>(size));
    if (text.size() > limit) {
      return std::unexpected("has more than " + std::to_string(limit) + " bytes");
    }
  }
}

}  // namespace agbox::cli
