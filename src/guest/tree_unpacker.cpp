// SPDX-License-Identifier: Apache-2.0
#include "guest/tree_unpacker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/open_beneath.h"
#include "base/path_within.h"
#include "base/shown_path.h"
#include "base/tar/entry_path.h"
#include "base/unique_fd.h"
#include "guest/image_file.h"

namespace agbox::guest {
namespace {

// Of the directories of an entry, each of which is open.
constexpr std::size_t kMaxDepth = 256;
constexpr mode_t kMadeDirectory = 0755;

// The mount that a file is on; 0 if the kernel does not report it.
std::uint64_t mount_of(int fd) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0) return 0;
  return (status.stx_mask & STATX_MNT_ID) != 0 ? status.stx_mnt_id : 0;
}

class Unpacking {
 public:
  Unpacking(int root, const UnpackOrder& order, TarReader::Source stream)
      : root_(root), order_(order), target_(order.target), reader_(std::move(stream)) {}

  Result<Unpacked> run() {
    while (target_.size() > 1 && target_.ends_with('/')) target_.pop_back();
    if (order_.is_single_file) {
      AGBOX_TRY_VOID(unpack_single_file());
    } else {
      AGBOX_TRY(target, make_path(target_));
      open_.push_back({.path = "", .fd = std::move(target)});
      AGBOX_TRY_VOID(unpack_entries());
    }
    return done_;
  }

 private:
  // A directory on the way to the entry that is unpacked.
  struct OpenDirectory {
    std::string path;  // below the target
    UniqueFd fd;
    std::optional<TarEntry> attributes{};  // to be set when nothing more is created in it
  };

  // --- messages ---

  std::string shown(std::string_view path) const {
    const std::string whole = target_ == "/" ? "" : target_;
    return shown_path(path.empty() ? target_ : whole + "/" + std::string(path));
  }
  std::unexpected<Error> problem(std::string_view path, std::string_view what) const {
    return fail(reason::kInvalidArgument, shown(path) + ": " + std::string(what));
  }
  std::unexpected<Error> failed(std::string_view path, int number) const {
    return std::unexpected(errno_error(shown(path), number));
  }

  // --- the target ---

  OpenedFile open_target(const std::string& path, int flags) const {
    return order_.is_outside_mounts ? open_outside_mounts(root_, path, flags)
                                    : open_as_mounted(root_, path, flags);
  }

  static std::unexpected<Error> in_a_mount(const std::string& path) {
    return fail(reason::kInvalidArgument,
                path +
                    ": is in a mount or in a volume of the image, where no shadow copy is "
                    "written; choose another image, or leave the tool out");
  }

  // Opens a directory of the container, and creates what is missing of it. Links are followed
  // inside the root, as the engine does for the targets of mounts.
  Result<UniqueFd> make_path(const std::string& path) {
    const auto at = [&](int number) { return errno_error(shown_path(path), number); };
    OpenedFile found = open_target(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
    if (found) return std::move(found.fd);
    if (found.problem == EXDEV) return in_a_mount(shown_path(path));
    if (found.problem == ENOTDIR) {
      return fail(reason::kInvalidArgument,
                  shown_path(path) +
                      ": is not a directory in the image, or one of its parents is "
                      "not; choose another target");
    }
    if (found.problem != ENOENT || path.empty()) return std::unexpected(at(found.problem));
    const std::string parent(all_but_last(path));
    AGBOX_TRY(directory, make_path(parent.empty() ? "/" : parent));
    const std::string name(last_component(path));
    if (::mkdirat(directory.get(), name.c_str(), kMadeDirectory) != 0) {
      if (errno != EEXIST) return std::unexpected(at(errno));
      return fail(reason::kInvalidArgument,
                  shown_path(path) +
                      ": is a symbolic link to nothing in the image; choose another "
                      "target");
    }
    UniqueFd made(
        ::openat(directory.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made) return std::unexpected(at(errno));
    if (::fchown(made.get(), order_.uid, order_.gid) != 0) return std::unexpected(at(errno));
    return made;
  }

  Result<> unpack_single_file() {
    AGBOX_TRY(entry, reader_.next());
    if (!entry || entry->kind != TarEntry::Kind::File || entry->path.contains('/')) {
      return problem("", "the stream does not begin with a file");
    }
    AGBOX_TRY(clean, clean_path(entry->path));
    if (clean.empty()) return problem("", "the file has no name");
    const bool is_directory = order_.target.ends_with('/') ||
                              static_cast<bool>(open_target(target_, O_PATH | O_DIRECTORY));
    if (is_directory) {
      entry->path = clean;
    } else {
      entry->path = last_component(target_);
      target_ = all_but_last(target_);
      if (target_.empty()) target_ = "/";
    }
    AGBOX_TRY(directory, make_path(target_));
    open_.push_back({.path = "", .fd = std::move(directory)});
    AGBOX_TRY_VOID(put_file(*entry));
    ++done_.entries;
    AGBOX_TRY(more, reader_.next());
    if (more) return problem("", "the stream has more than one file");
    return {};
  }

  // --- entries ---

  Result<> unpack_entries() {
    while (true) {
      AGBOX_TRY(entry, reader_.next());
      if (!entry) break;
      AGBOX_TRY(path, clean_path(entry->path));
      if (path.empty()) continue;  // the target itself, which keeps its attributes
      entry->path = std::move(path);
      AGBOX_TRY_VOID(enter(std::string(all_but_last(entry->path))));
      switch (entry->kind) {
        case TarEntry::Kind::File:
          AGBOX_TRY_VOID(put_file(*entry));
          break;
        case TarEntry::Kind::Directory:
          AGBOX_TRY_VOID(put_directory(std::move(*entry)));
          break;
        case TarEntry::Kind::Symlink:
          AGBOX_TRY_VOID(put_symlink(*entry));
          break;
      }
      ++done_.entries;
    }
    return leave_all_but(1);
  }

  // Without "./" and repeated slashes; an error if it leads elsewhere.
  Result<std::string> clean_path(std::string_view path) const {
    const auto refused = [&](std::string_view what) {
      return fail(reason::kInvalidArgument, shown_path(path) + ": " + std::string(what));
    };
    if (path.starts_with('/')) return refused("an absolute path, which is not unpacked");
    std::string clean;
    std::size_t depth = 0;
    while (!path.empty()) {
      const std::size_t slash = path.find('/');
      const std::string_view component = path.substr(0, slash);
      path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
      if (component.empty() || component == ".") continue;
      if (component == "..") return refused("leads out of the target, which is not unpacked");
      if (++depth > kMaxDepth) return refused("too many directories");
      clean.append(clean.empty() ? "" : "/").append(component);
    }
    return clean;
  }

  int directory() const { return open_.back().fd.get(); }

  // Opens the directories down to `path`, and creates those that have no entry of their own.
  Result<> enter(const std::string& path) {
    std::size_t kept = 1;
    while (kept < open_.size() && is_path_within(path, open_[kept].path)) ++kept;
    AGBOX_TRY_VOID(leave_all_but(kept));
    while (open_.back().path.size() < path.size()) {
      const std::string& at = open_.back().path;
      const std::size_t begin = at.empty() ? 0 : at.size() + 1;
      const std::string next = path.substr(0, path.find('/', begin));
      AGBOX_TRY_VOID(open_or_make(next));
    }
    return {};
  }

  // Returns whether it existed, in the directory that is open.
  Result<bool> open_or_make(const std::string& path) {
    const std::string name(last_component(path));
    const bool existed = ::mkdirat(directory(), name.c_str(), kMadeDirectory) != 0;
    if (existed && errno != EEXIST) return failed(path, errno);
    UniqueFd fd =
        open_beneath(directory(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK,
                     order_.is_outside_mounts ? kInTree : kBeneath);
    if (!fd && errno == EXDEV) return in_a_mount(shown(path));
    if (!fd && (errno == ENOTDIR || errno == ELOOP)) {
      return problem(path, "is a directory in the copy, but not in the image");
    }
    if (!fd) return failed(path, errno);
    if (!existed && ::fchown(fd.get(), order_.uid, order_.gid) != 0) return failed(path, errno);
    open_.push_back({.path = path, .fd = std::move(fd)});
    return existed;
  }

  Result<> put_directory(TarEntry entry) {
    AGBOX_TRY(existed, open_or_make(entry.path));
    // What was mounted keeps its owner, mode and times: it is not the container's.
    if (existed && mount_of(directory()) != mount_of(root_)) return {};
    open_.back().attributes = std::move(entry);
    return {};
  }

  Result<> leave_all_but(std::size_t kept) {
    while (open_.size() > kept) {
      const OpenDirectory left = std::move(open_.back());
      open_.pop_back();
      if (left.attributes) AGBOX_TRY_VOID(set_attributes(left.fd.get(), *left.attributes));
    }
    return {};
  }

  Result<> set_attributes(int fd, const TarEntry& entry) {
    const auto times = times_of(entry);
    if (::fchown(fd, order_.uid, order_.gid) != 0 || ::fchmod(fd, entry.mode & 01777) != 0 ||
        ::futimens(fd, times.data()) != 0) {
      return failed(entry.path, errno);
    }
    return {};
  }

  // Calls `create` for the entry; what the image has in its place is removed first.
  template <class Create>
  Result<> create(const TarEntry& entry, const char* name, Create create) {
    if (create()) return {};
    if (errno != EEXIST) return failed(entry.path, errno);
    if (::unlinkat(directory(), name, 0) != 0) {
      if (errno == EISDIR || errno == EPERM) {
        return problem(entry.path, "is a directory in the image, but not in the copy");
      }
      if (errno == EBUSY) return problem(entry.path, "is a mount, which a copy does not replace");
      return failed(entry.path, errno);
    }
    if (create()) return {};
    return failed(entry.path, errno);
  }

  Result<> put_symlink(const TarEntry& entry) {
    const std::string name(last_component(entry.path));
    AGBOX_TRY_VOID(create(entry, name.c_str(), [&] {
      return ::symlinkat(entry.target.c_str(), directory(), name.c_str()) == 0;
    }));
    const auto times = times_of(entry);
    if (::fchownat(directory(), name.c_str(), order_.uid, order_.gid, AT_SYMLINK_NOFOLLOW) != 0 ||
        ::utimensat(directory(), name.c_str(), times.data(), AT_SYMLINK_NOFOLLOW) != 0) {
      return failed(entry.path, errno);
    }
    return {};
  }

  Result<> put_file(const TarEntry& entry) {
    const std::string name(last_component(entry.path));
    UniqueFd file;
    AGBOX_TRY_VOID(create(entry, name.c_str(), [&] {
      file.reset(::openat(directory(), name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      return static_cast<bool>(file);
    }));
    if (entry.is_sparse) {
      for (const TarExtent& extent : entry.extents) {
        AGBOX_TRY_VOID(put_bytes(file.get(), entry, extent));
      }
      if (::ftruncate(file.get(), static_cast<off_t>(entry.size)) != 0) {
        return failed(entry.path, errno);
      }
    } else {
      AGBOX_TRY_VOID(put_bytes(file.get(), entry, {.offset = 0, .length = entry.size}));
    }
    return set_attributes(file.get(), entry);
  }

  Result<> put_bytes(int file, const TarEntry& entry, const TarExtent& extent) {
    std::uint64_t at = extent.offset;
    const std::uint64_t end = extent.offset + extent.length;
    while (at < end) {
      if (unwritten_.empty()) {
        AGBOX_TRY(bytes, reader_.content());
        unwritten_ = bytes;
      }
      const std::size_t size =
          static_cast<std::size_t>(std::min<std::uint64_t>(unwritten_.size(), end - at));
      const ssize_t written = ::pwrite(file, unwritten_.data(), size, static_cast<off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed(entry.path, errno);
      unwritten_.remove_prefix(static_cast<std::size_t>(written));
      at += static_cast<std::uint64_t>(written);
      done_.bytes += static_cast<std::uint64_t>(written);
    }
    return {};
  }

  int root_;
  const UnpackOrder& order_;
  std::string target_;  // without slashes at its end
  TarReader reader_;
  std::string_view unwritten_;  // of the reader's content
  std::vector<OpenDirectory> open_;
  Unpacked done_;
};

}  // namespace

Result<Unpacked> unpack_tree(int root, const UnpackOrder& order, TarReader::Source stream) {
  return Unpacking(root, order, std::move(stream)).run();
}

}  // namespace agbox::guest
