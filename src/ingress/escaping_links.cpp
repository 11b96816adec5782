// SPDX-License-Identifier: Apache-2.0
#include "ingress/escaping_links.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/open_beneath.h"
#include "base/shown_path.h"
#include "base/unique_fd.h"
#include "ingress/tree_links.h"

namespace agbox {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;

// It vanished, or is something else by now.
bool has_changed(int problem) {
  return problem == ENOENT || problem == ENOTDIR || problem == ELOOP;
}

class Scan {
 public:
  Scan(int root, const std::string& path, const ScanLimits& limits)
      : root_(root), path_(path), limits_(limits), deadline_(Clock::now() + limits.time) {}

  EscapingLinkScan run() {
    if (UniqueFd root = open_beneath(root_, ".", kDirectory, kInTree)) {
      scan(std::move(root), "", 0);
    } else {
      skip_unreadable("", errno);
    }
    if (found_.link) found_.unsearched.clear();
    return std::move(found_);
  }

 private:
  enum class Next { Continue, End };

  // --- what is not searched ---

  void skip(std::string_view path, const std::string& why) {
    if (!found_.unsearched.empty()) return;
    const std::string whole = path_ + (path.empty() ? "" : "/") + std::string(path);
    found_.unsearched = shown_path(whole) + " " + why;
  }
  void skip_unreadable(std::string_view path, int problem) {
    skip(path, "cannot be read: " + std::generic_category().message(problem));
  }
  Next count_entry() {
    if (++entries_ > limits_.entries) {
      skip("", "has more than " + std::to_string(limits_.entries) + " entries");
      return Next::End;
    }
    if (Clock::now() >= deadline_) {
      skip("", "took longer than " + std::to_string(limits_.time.count()) + " ms to search");
      return Next::End;
    }
    return Next::Continue;
  }

  // --- the walk ---

  Next scan(UniqueFd directory, const std::string& parent, int depth) {
    if (depth > limits_.depth) {
      skip(parent, "is deeper than " + std::to_string(limits_.depth) + " directories");
      return Next::Continue;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(directory.get()), ::closedir);
    if (!entries) {
      skip_unreadable(parent, errno);
      return Next::Continue;
    }
    directory.release();
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(entries.get());
      if (entry == nullptr) {
        if (errno != 0) skip_unreadable(parent, errno);
        return Next::Continue;
      }
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (count_entry() == Next::End) return Next::End;
      const std::string path = parent + (parent.empty() ? "" : "/") + std::string(name);
      if (visit(::dirfd(entries.get()), *entry, parent, path, depth) == Next::End) return Next::End;
    }
  }

  Next visit(int directory, const dirent& entry, const std::string& parent, const std::string& path,
             int depth) {
    unsigned char type = entry.d_type;
    if (type == DT_UNKNOWN) {
      struct stat status{};
      if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (!has_changed(errno)) skip_unreadable(path, errno);
        return Next::Continue;
      }
      type = IFTODT(status.st_mode);
    }
    if (type == DT_LNK) return judge_link(directory, entry.d_name, parent, path);
    if (type != DT_DIR) return Next::Continue;
    UniqueFd below = open_beneath(directory, entry.d_name, kDirectory, kInTree);
    if (below) return scan(std::move(below), path, depth + 1);
    // A filesystem that is mounted there is not visible inside.
    if (errno != EXDEV && !has_changed(errno)) skip_unreadable(path, errno);
    return Next::Continue;
  }

  Next judge_link(int directory, const char* name, const std::string& parent,
                  const std::string& path) {
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlinkat(directory, name, text.data(), text.size());
    if (length < 0) {
      if (errno != EINVAL && !has_changed(errno)) skip_unreadable(path, errno);
      return Next::Continue;
    }
    const std::string_view target(text.data(), static_cast<std::size_t>(length));
    if (target_inside_by_text(path_, parent, target)) return Next::Continue;
    found_.link = path;
    return Next::End;
  }

  int root_;
  const std::string& path_;
  const ScanLimits& limits_;
  Clock::time_point deadline_;
  std::uint64_t entries_ = 0;
  EscapingLinkScan found_;
};

}  // namespace

EscapingLinkScan find_escaping_link(int root, const std::string& path, const ScanLimits& limits) {
  return Scan(root, path, limits).run();
}

}  // namespace agbox
