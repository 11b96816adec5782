// SPDX-License-Identifier: Apache-2.0
#include "execlog/spare_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/uuid.h"

namespace agbox {
namespace {

// Two per exec: enough for a burst, until more are created.
constexpr std::size_t kMostSpares = 128;
constexpr std::size_t kFewSpares = 96;
// No sandbox ID begins with this.
constexpr const char* kDirectoryPrefix = ".spare-";

}  // namespace

SpareFiles::SpareFiles(const std::filesystem::path& root, const std::string& instance_id)
    : root_(root), directory_(root / (kDirectoryPrefix + instance_id)) {
  thread_.emplace();
}

SpareFiles::~SpareFiles() {
  thread_.reset();
  if (!directory_fd_) return;
  for (const Spare& spare : spares_) ::unlinkat(directory_fd_.get(), spare.name.c_str(), 0);
  ::rmdir(directory_.c_str());
}

UniqueFd SpareFiles::take(int directory, const std::string& name) {
  UniqueFd taken;
  if (!spares_.empty()) {
    if (::renameat2(directory_fd_.get(), spares_.back().name.c_str(), directory, name.c_str(),
                    RENAME_NOREPLACE) == 0) {
      taken = std::move(spares_.back().fd);
      spares_.pop_back();
    } else if (errno == ENOENT) {
      forget_removed();
    }
  }
  if (spares_.size() < kFewSpares && !std::exchange(is_refilling_, true)) refill_later();
  return taken;
}

// First removes what a killed daemon left in the directory.
UniqueFd SpareFiles::open_directory() const {
  std::error_code ignored;  // any problem here shows up at the next step too
  std::filesystem::remove_all(directory_, ignored);
  ::mkdir(directory_.c_str(), 0700);
  return UniqueFd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Another process removed them.
void SpareFiles::forget_removed() {
  spares_.clear();
  directory_fd_.reset();
}

void SpareFiles::refill_later() {
  boost::asio::post(thread_->executor(), [this] { refill(); });
}

// If none can be created, the next attempt is at the next take().
void SpareFiles::refill() {
  if (!directory_fd_) directory_fd_ = open_directory();
  constexpr int flags = O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  std::string name = random_uuid();
  UniqueFd fd(::openat(directory_fd_.get(), name.c_str(), flags, 0600));
  if (!fd && errno == ENOENT) forget_removed();
  is_refilling_ = fd && spares_.size() + 1 < kMostSpares;
  if (fd) spares_.push_back({.name = std::move(name), .fd = std::move(fd)});
  if (is_refilling_) refill_later();
}

}  // namespace agbox
