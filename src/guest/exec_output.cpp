// SPDX-License-Identifier: Apache-2.0
#include "guest/exec_output.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

namespace agbox::guest {
namespace {

// A check takes a microsecond, writing this much several hundred. The reserve can be exceeded by
// this much per exec.
constexpr std::uint64_t kCheckInterval = std::uint64_t{1} << 20;

}  // namespace

void ExecOutput::append(int file, std::string_view bytes) {
  if (truncated_ || bytes.empty()) return;
  if (limits_.bytes != 0 && bytes.size() > limits_.bytes - written_) {
    truncated_ = true;
    bytes = bytes.substr(0, limits_.bytes - written_);
  }
  if (!leaves_reserve(file, bytes.size())) {
    truncated_ = true;
    return;
  }
  while (!bytes.empty()) {
    const ssize_t took = ::write(file, bytes.data(), bytes.size());
    if (took < 0 && errno == EINTR) continue;
    if (took <= 0) {  // full, over quota, broken: a gap would falsify the log
      truncated_ = true;
      return;
    }
    written_ += static_cast<std::uint64_t>(took);
    bytes.remove_prefix(static_cast<std::size_t>(took));
  }
}

bool ExecOutput::leaves_reserve(int file, std::size_t size) {
  if (limits_.free_space_reserve == 0) return true;
  if (size <= until_next_check_) {
    until_next_check_ -= size;
    return true;
  }
  struct statvfs filesystem{};
  if (::fstatvfs(file, &filesystem) != 0) return true;  // the write itself will fail
  const std::uint64_t free = std::uint64_t{filesystem.f_bavail} * filesystem.f_frsize;
  until_next_check_ = kCheckInterval;
  return free >= size && free - size >= limits_.free_space_reserve;
}

}  // namespace agbox::guest
