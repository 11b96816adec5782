// SPDX-License-Identifier: Apache-2.0
#include "control/spare_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <system_error>
#include <utility>

#include "base/uuid.h"

namespace agbox {
namespace {

// Two for each exec: enough for a burst, while the thread makes the next ones.
constexpr std::size_t kMostSpares = 128;
constexpr std::size_t kFewSpares = 96;
// No sandbox has such an id.
constexpr const char* kFolderName = ".spare";

}  // namespace

SpareFiles::SpareFiles(const std::filesystem::path& root)
    : root_(root), folder_(root / kFolderName) {}

SpareFiles::~SpareFiles() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  something_to_do_.notify_one();
  if (!thread_.joinable()) return;
  thread_.join();
  for (const Spare& spare : spares_) ::unlinkat(folder_fd_.get(), spare.name.c_str(), 0);
}

UniqueFd SpareFiles::take(int folder, const std::string& name) {
  const std::scoped_lock lock(mutex_);
  UniqueFd taken;
  if (!spares_.empty() && ::renameat2(folder_fd_.get(), spares_.back().name.c_str(), folder,
                                      name.c_str(), RENAME_NOREPLACE) == 0) {
    taken = std::move(spares_.back().fd);
    spares_.pop_back();
  }
  if (spares_.size() < kFewSpares) {
    wants_more_ = true;
    something_to_do_.notify_one();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  return taken;
}

// What a daemon that was killed left in the folder goes first.
UniqueFd SpareFiles::open_folder() const {
  std::error_code ignored;  // whatever is wrong here is wrong at the next step too
  std::filesystem::remove_all(folder_, ignored);
  ::mkdir(folder_.c_str(), 0700);
  return UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd SpareFiles::make(const std::string& name) const {
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  return UniqueFd(::openat(folder_fd_.get(), name.c_str(), flags, 0600));
}

void SpareFiles::run() {
  auto folder = open_folder();
  std::unique_lock lock(mutex_);
  folder_fd_ = std::move(folder);
  while (true) {
    something_to_do_.wait(lock, [&] { return is_ending_ || wants_more_; });
    if (is_ending_) return;
    lock.unlock();
    std::string name = random_uuid();
    UniqueFd fd = make(name);
    lock.lock();
    wants_more_ = static_cast<bool>(fd) && spares_.size() + 1 < kMostSpares;
    if (fd) spares_.push_back({.name = std::move(name), .fd = std::move(fd)});
  }
}

}  // namespace agbox
