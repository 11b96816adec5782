// SPDX-License-Identifier: Apache-2.0
#include "cli/format/file_text.h"

#include <fcntl.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/unique_fd.h"

namespace agbox::cli {

std::expected<std::string, std::string> read_file(const std::filesystem::path& path,
                                                  std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto text = fd ? read_all(fd.get(), limit) : std::unexpected(errno);
  if (text) return std::move(*text);
  if (text.error() != EFBIG) return std::unexpected(std::generic_category().message(text.error()));
  return std::unexpected("has more than " + std::to_string(limit) + " bytes");
}

}  // namespace agbox::cli
