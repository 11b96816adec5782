// SPDX-License-Identifier: Apache-2.0
#include "guest/descriptors.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>

#include "base/check.h"

namespace agbox::guest {
namespace {

// By number: an engine's seccomp profile may not know it, which shows as an error.
bool close_range(unsigned first, unsigned last) {
  return first > last || ::syscall(SYS_close_range, first, last, 0) == 0;
}

bool close_around(const std::vector<int>& kept) {
  unsigned first = 0;
  for (const int fd : kept) {
    const auto number = static_cast<unsigned>(fd);
    if (number > first && !close_range(first, number - 1)) return false;
    first = number + 1;
  }
  return close_range(first, std::numeric_limits<unsigned>::max());
}

void close_one_by_one(const std::vector<int>& kept) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir("/proc/self/fd"), ::closedir);
  AGBOX_CHECK(directory, "opening /proc/self/fd");
  std::vector<int> found;
  while (const dirent* entry = ::readdir(directory.get())) {
    int fd = -1;
    std::from_chars(entry->d_name, entry->d_name + std::strlen(entry->d_name), fd);
    if (fd >= 0 && fd != ::dirfd(directory.get())) found.push_back(fd);
  }
  for (const int fd : found) {
    if (!std::ranges::binary_search(kept, fd)) ::close(fd);
  }
}

}  // namespace

void close_all_but(std::vector<int> kept) {
  std::ranges::sort(kept);
  if (!close_around(kept)) close_one_by_one(kept);
}

}  // namespace agbox::guest
