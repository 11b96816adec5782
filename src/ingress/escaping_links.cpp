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

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK;

using MaybePath = std::optional<std::string>;

// It vanished, or is something else by now.
bool has_changed(int problem) {
  return problem == ENOENT || problem == ENOTDIR || problem == ELOOP;
}

class Scan {
 public:
  Scan(int root, const std::string& path, const ScanLimits& limits)
      : root_(root), path_(path), limits_(limits), links_(root, path) {}

  Result<MaybePath> run() {
    UniqueFd root = open_beneath(root_, ".", kDirectory, kInTree);
    if (!root) return unreadable("", errno);
    return scan(std::move(root), "", 0);
  }

 private:
  std::string shown(std::string_view path) const {
    return shown_path(path_ + (path.empty() ? "" : "/") + std::string(path));
  }
  std::unexpected<Error> refused(std::string_view path, const std::string& why) const {
    return fail(reason::kInvalidArgument, shown(path) + " " + why);
  }
  std::unexpected<Error> unreadable(std::string_view path, int problem) const {
    return refused(path, "cannot be read: " + std::generic_category().message(problem) +
                             "; change its owner or mode");
  }

  Result<MaybePath> scan(UniqueFd directory, const std::string& parent, int depth) {
    if (depth > limits_.depth) {
      return refused(parent, "is deeper than " + std::to_string(limits_.depth) +
                                 " directories; remove what is not needed");
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(directory.get()), ::closedir);
    if (!entries) return unreadable(parent, errno);
    directory.release();
    while (true) {
      errno = 0;
      const dirent* const entry = ::readdir(entries.get());
      if (entry == nullptr && errno != 0) return unreadable(parent, errno);
      if (entry == nullptr) return MaybePath();
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (++entries_ > limits_.entries) {
        return refused("", "has more than " + std::to_string(limits_.entries) +
                               " entries; remove what is not needed");
      }
      const std::string path = parent + (parent.empty() ? "" : "/") + std::string(name);
      AGBOX_TRY(found, visit(::dirfd(entries.get()), *entry, parent, path, depth));
      if (found) return std::move(found);
    }
  }

  Result<MaybePath> visit(int directory, const dirent& entry, const std::string& parent,
                          const std::string& path, int depth) {
    unsigned char type = entry.d_type;
    if (type == DT_UNKNOWN) {
      struct stat status{};
      if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (has_changed(errno)) return MaybePath();
        return unreadable(path, errno);
      }
      type = IFTODT(status.st_mode);
    }
    if (type == DT_LNK) return judge_link(directory, entry.d_name, parent, path);
    if (type != DT_DIR) return MaybePath();
    UniqueFd below = open_beneath(directory, entry.d_name, kDirectory, kInTree);
    if (below) return scan(std::move(below), path, depth + 1);
    // A filesystem that is mounted there is not visible inside.
    if (errno == EXDEV || has_changed(errno)) return MaybePath();
    return unreadable(path, errno);
  }

  Result<MaybePath> judge_link(int directory, const char* name, const std::string& parent,
                               const std::string& path) {
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlinkat(directory, name, text.data(), text.size());
    if (length < 0 && (errno == EINVAL || has_changed(errno))) return MaybePath();
    if (length < 0) return unreadable(path, errno);
    const std::string_view target(text.data(), static_cast<std::size_t>(length));
    if (!links_.target_inside(parent, target)) return path;
    if (links_.lookups() > limits_.lookups) {
      return refused("", "has too many symbolic links; remove what is not needed");
    }
    return MaybePath();
  }

  int root_;
  const std::string& path_;
  const ScanLimits& limits_;
  TreeLinks links_;
  std::uint64_t entries_ = 0;
};

}  // namespace

Result<std::optional<std::string>> find_escaping_link(int root, const std::string& path,
                                                      const ScanLimits& limits) {
  return Scan(root, path, limits).run();
}

}  // namespace agbox
