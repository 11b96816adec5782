// SPDX-License-Identifier: Apache-2.0
#include "execlog/spare_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/uuid.h"

namespace agbox {
namespace {

// Two per exec: enough for a burst, while the thread creates more.
constexpr std::size_t kMostSpares = 128;
constexpr std::size_t kFewSpares = 96;
// No sandbox ID begins with this.
constexpr const char* kFolderPrefix = ".spare-";

}  // namespace

SpareFiles::SpareFiles(const std::filesystem::path& root, const std::string& instance_id)
    : root_(root), folder_(root / (kFolderPrefix + instance_id)) {}

SpareFiles::~SpareFiles() {
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  something_to_do_.notify_one();
  if (!thread_.joinable()) return;
  thread_.join();
  for (const Spare& spare : spares_) ::unlinkat(folder_fd_.get(), spare.name.c_str(), 0);
  ::rmdir(folder_.c_str());
}

UniqueFd SpareFiles::take(int folder, const std::string& name) {
  const std::scoped_lock lock(mutex_);
  UniqueFd taken;
  if (!spares_.empty()) {
    if (::renameat2(folder_fd_.get(), spares_.back().name.c_str(), folder, name.c_str(),
                    RENAME_NOREPLACE) == 0) {
      taken = std::move(spares_.back().fd);
      spares_.pop_back();
    } else if (errno == ENOENT) {  // another process removed them
      spares_.clear();
      is_gone_ = true;
    }
  }
  if (spares_.size() < kFewSpares) {
    wants_more_ = true;
    something_to_do_.notify_one();
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  }
  return taken;
}

// First removes what a killed daemon left in the directory.
UniqueFd SpareFiles::open_folder() const {
  std::error_code ignored;  // any problem here shows up at the next step too
  std::filesystem::remove_all(folder_, ignored);
  ::mkdir(folder_.c_str(), 0700);
  return UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

UniqueFd SpareFiles::make(const std::string& name) const {
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  return UniqueFd(::openat(folder_fd_.get(), name.c_str(), flags, 0600));
}

void SpareFiles::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    something_to_do_.wait(lock, [&] { return is_ending_ || wants_more_; });
    if (is_ending_) return;
    if (is_gone_) {
      lock.unlock();
      UniqueFd opened = open_folder();
      lock.lock();
      folder_fd_ = std::move(opened);
      is_gone_ = !folder_fd_;
    }
    lock.unlock();
    std::string name = random_uuid();
    UniqueFd fd = make(name);
    const bool has_no_folder = !fd && errno == ENOENT;
    lock.lock();
    if (has_no_folder) is_gone_ = true;
    wants_more_ = static_cast<bool>(fd) && spares_.size() + 1 < kMostSpares;
    if (fd && !is_gone_) spares_.push_back({.name = std::move(name), .fd = std::move(fd)});
  }
}

}  // namespace agbox
