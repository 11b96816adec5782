// SPDX-License-Identifier: Apache-2.0
#include "base/tar/live_tree_packer.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/shown_path.h"
#include "base/tar/file_extents.h"
#include "base/tar/tar_writer.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

constexpr std::size_t kPackBuffer = std::size_t{256} << 10;
constexpr int kOpenForReading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

constexpr long kMqueueMagic = 0x19800202;
constexpr long kConfigfsMagic = 0x62656570;

// Their files have no content of their own: sizes are made up, and reading may have effects.
bool is_kernel_filesystem(int fd) {
  struct statfs filesystem{};
  if (::fstatfs(fd, &filesystem) != 0) return false;
  switch (static_cast<long>(filesystem.f_type)) {
    case PROC_SUPER_MAGIC:
    case SYSFS_MAGIC:
    case CGROUP_SUPER_MAGIC:
    case CGROUP2_SUPER_MAGIC:
    case DEBUGFS_MAGIC:
    case TRACEFS_MAGIC:
    case SECURITYFS_MAGIC:
    case BPF_FS_MAGIC:
    case PSTOREFS_MAGIC:
    case EFIVARFS_MAGIC:
    case kMqueueMagic:
    case DEVPTS_SUPER_MAGIC:
    case kConfigfsMagic:
      return true;
    default:
      return false;
  }
}

std::string_view kind_of(mode_t type) {
  switch (type) {
    case S_IFIFO:
      return "a FIFO";
    case S_IFSOCK:
      return "a socket";
    default:
      return "a device";
  }
}

// The path without what is only for the kernel, and the name of the root.
struct RootPath {
  std::string root_name;
  bool is_directory = false;  // by how it is written
};

RootPath root_of(std::string_view path) {
  RootPath root;
  root.is_directory = path.ends_with('/');
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const std::string_view last = path.substr(path.rfind('/') + 1);
  const bool is_content = last.empty() || last == "." || last == "..";
  root.root_name = is_content ? "." : std::string(last);
  root.is_directory |= is_content;
  return root;
}

// An entry of a directory that is being walked.
struct FoundEntry {
  int directory;            // a descriptor
  const char* name;         // in it
  const std::string& path;  // in the stream
  mode_t type;              // as the directory has it, so it may be outdated
};

class LivePacking {
 public:
  LivePacking(const std::string& path, const TreeLimits& limits, const TarSink& sink,
              const TreeProgress& progress)
      : path_(path), limits_(limits), sink_(sink), progress_(progress), buffer_(kPackBuffer) {}

  Result<PackedTree> run() {
    const RootPath root = root_of(path_);
    root_name_ = root.root_name;
    struct stat status{};
    const int flags = root.is_directory ? 0 : AT_SYMLINK_NOFOLLOW;
    if (::fstatat(AT_FDCWD, path_.c_str(), &status, flags) != 0) return root_error(errno);
    if (root.is_directory && !S_ISDIR(status.st_mode)) return root_error(ENOTDIR);
    switch (status.st_mode & S_IFMT) {
      case S_IFDIR:
        AGBOX_TRY_VOID(pack_root_directory(root.is_directory));
        break;
      case S_IFREG:
      case S_IFLNK:
        AGBOX_TRY_VOID(pack_root_entry(status.st_mode & S_IFMT));
        break;
      default:
        return fail(reason::kPathConflict, shown_path(path_) + ": is " +
                                               std::string(kind_of(status.st_mode & S_IFMT)) +
                                               ", which cannot be copied");
    }
    AGBOX_TRY_VOID(write(tar_end()));
    AGBOX_TRY_VOID(flush());
    return packed_;
  }

 private:
  // --- messages ---

  std::unexpected<Error> root_error(int number) const {
    return std::unexpected(path_error(path_, number));
  }
  // `path` is that of the stream.
  std::string shown(std::string_view path) const {
    std::string_view above = path_;
    if (root_name_ != ".") {
      while (above.size() > 1 && above.ends_with('/')) above.remove_suffix(1);
      above =
          above.substr(0, above.rfind('/') == std::string_view::npos ? 0 : above.rfind('/') + 1);
    } else {
      if (above.ends_with("/.")) above.remove_suffix(1);
      path = path.substr(std::min<std::size_t>(path.size(), 2));  // "./"
    }
    std::string whole(above);
    if (!whole.empty() && !whole.ends_with('/') && !path.empty()) whole += '/';
    return shown_path(whole.append(path));
  }
  std::unexpected<Error> failed(std::string_view path, int number) const {
    const Error error = path_error("", number);
    return fail(error.reason(), shown(path) + error.message());
  }
  Result<> note(std::string_view path, std::string_view what) {
    if (++packed_.notes.count == 1) packed_.notes.first = shown(path) + ": " + std::string(what);
    return {};
  }
  Result<> vanished_or_failed(std::string_view path, int number) {
    // ELOOP and ENOTDIR: it is another kind of file by now.
    if (number == ENOENT) return {};
    if (number == ELOOP || number == ENOTDIR) return note(path, "was replaced while it was copied");
    if (number == ENXIO || number == ENODEV) return note(path, "is a socket or a device");
    return failed(path, number);
  }

  // --- the root ---

  Result<> pack_root_directory(bool follows_link) {
    UniqueFd directory(
        ::open(path_.c_str(), (kOpenForReading & ~(follows_link ? O_NOFOLLOW : 0)) | O_DIRECTORY));
    struct stat status{};
    if (!directory || ::fstat(directory.get(), &status) != 0) return root_error(errno);
    if (is_kernel_filesystem(directory.get())) return on_kernel_filesystem();
    AGBOX_TRY_VOID(put_header(entry_of(TarEntry::Kind::Directory, root_name_, status)));
    return walk(std::move(directory), root_name_, status.st_dev, 1);
  }

  std::unexpected<Error> on_kernel_filesystem() const {
    return fail(reason::kPathConflict,
                shown_path(path_) +
                    ": is on a filesystem of the kernel, which cannot be copied; read it with "
                    "a command");
  }

  Result<> pack_root_entry(mode_t type) {
    if (type == S_IFREG) {
      const UniqueFd file(::open(path_.c_str(), kOpenForReading));
      struct stat status{};
      if (!file || ::fstat(file.get(), &status) != 0) return root_error(errno);
      if (!S_ISREG(status.st_mode)) return root_error(EBUSY);
      if (is_kernel_filesystem(file.get())) return on_kernel_filesystem();
      return put_file(file.get(), root_name_, status);
    }
    const auto entries = packed_.counts.entries;
    AGBOX_TRY_VOID(pack_link(
        {.directory = AT_FDCWD, .name = path_.c_str(), .path = root_name_, .type = S_IFLNK}));
    if (packed_.counts.entries == entries) return root_error(ENOENT);
    return {};
  }

  // --- the walk ---

  Result<> walk(UniqueFd directory, const std::string& parent, dev_t device, std::size_t depth) {
    if (depth > kMaxTreeDepth) {
      return fail(reason::kCopyTooLarge, shown(parent) + ": is deeper than " +
                                             std::to_string(kMaxTreeDepth) +
                                             " directories; copy a directory further down");
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(directory.get()), ::closedir);
    if (!entries) return failed(parent, errno);
    directory.release();
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(entries.get());
      if (entry == nullptr && errno == ENOENT) return {};  // it was removed
      if (entry == nullptr && errno != 0) return failed(parent, errno);
      if (entry == nullptr) return {};
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = parent + "/" + std::string(name);
      if (path.size() > kMaxTarPath) {
        return fail(reason::kCopyTooLarge, shown(path) + ": its path is too long");
      }
      FoundEntry found{.directory = ::dirfd(entries.get()),
                       .name = entry->d_name,
                       .path = path,
                       .type = DTTOIF(static_cast<mode_t>(entry->d_type))};
      if (entry->d_type == DT_UNKNOWN) {
        struct stat status{};
        if (::fstatat(found.directory, found.name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
          AGBOX_TRY_VOID(vanished_or_failed(path, errno));
          continue;
        }
        found.type = status.st_mode & S_IFMT;
      }
      AGBOX_TRY_VOID(pack(found, device, depth));
    }
  }

  Result<> pack(const FoundEntry& found, dev_t device, std::size_t depth) {
    switch (found.type) {
      case S_IFDIR:
        return pack_subdirectory(found, device, depth);
      case S_IFREG:
        return pack_file(found);
      case S_IFLNK:
        return pack_link(found);
      default:
        return note(found.path, "is " + std::string(kind_of(found.type)));
    }
  }

  Result<> pack_subdirectory(const FoundEntry& found, dev_t device, std::size_t depth) {
    UniqueFd directory(::openat(found.directory, found.name, kOpenForReading | O_DIRECTORY));
    struct stat status{};
    if (!directory) return vanished_or_failed(found.path, errno);
    if (::fstat(directory.get(), &status) != 0) return failed(found.path, errno);
    if (status.st_dev != device && is_kernel_filesystem(directory.get())) {
      return note(found.path, "is a filesystem of the kernel");
    }
    AGBOX_TRY_VOID(put_header(entry_of(TarEntry::Kind::Directory, found.path, status)));
    return walk(std::move(directory), found.path, status.st_dev, depth + 1);
  }

  Result<> pack_link(const FoundEntry& found) {
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlinkat(found.directory, found.name, text.data(), text.size());
    // EINVAL: it is no link any more.
    if (length < 0) return vanished_or_failed(found.path, errno == EINVAL ? ELOOP : errno);
    struct stat status{};
    if (::fstatat(found.directory, found.name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return vanished_or_failed(found.path, errno);
    }
    TarEntry entry = entry_of(TarEntry::Kind::Symlink, found.path, status);
    entry.target.assign(text.data(), static_cast<std::size_t>(length));
    if (entry.target.empty() || entry.target.size() > kMaxTarPath) {
      return note(found.path, "is a symbolic link whose target is too long");
    }
    return put_header(entry);
  }

  Result<> pack_file(const FoundEntry& found) {
    const UniqueFd file(::openat(found.directory, found.name, kOpenForReading));
    struct stat status{};
    if (!file) return vanished_or_failed(found.path, errno);
    if (::fstat(file.get(), &status) != 0) return failed(found.path, errno);
    if (!S_ISREG(status.st_mode)) return vanished_or_failed(found.path, ELOOP);
    return put_file(file.get(), found.path, status);
  }

  // --- entries ---

  static TarEntry entry_of(TarEntry::Kind kind, std::string path, const struct stat& status) {
    return {.kind = kind,
            .path = std::move(path),
            .target = {},
            .mode = status.st_mode & 01777,
            .mtime_seconds = status.st_mtim.tv_sec,
            .mtime_nanoseconds = static_cast<std::uint32_t>(status.st_mtim.tv_nsec)};
  }

  Result<> put_header(const TarEntry& entry) {
    TreeCounts& counts = packed_.counts;
    if (++counts.entries > limits_.entries) {
      return fail(reason::kCopyTooLarge, shown_path(path_) + ": has more than " +
                                             std::to_string(limits_.entries) + " entries");
    }
    if (entry.stored_bytes() > limits_.bytes - counts.bytes) {
      return fail(reason::kCopyTooLarge, shown_path(path_) + ": has more than " +
                                             std::to_string(limits_.bytes) +
                                             " bytes, without holes of sparse files");
    }
    if (progress_) progress_(counts);
    return write(tar_header(entry));
  }

  Result<> put_file(int file, const std::string& path, const struct stat& status) {
    TarEntry entry = entry_of(TarEntry::Kind::File, path, status);
    entry.size = static_cast<std::uint64_t>(status.st_size);
    if (auto extents = extents_of(file, status)) {
      entry.is_sparse = true;
      entry.extents = std::move(*extents);
    } else {
      entry.extents = {{.offset = 0, .length = entry.size}};
    }
    AGBOX_TRY_VOID(put_header(entry));
    bool is_shorter = false;
    for (const TarExtent& extent : entry.extents) {
      AGBOX_TRY_VOID(put_extent(file, path, extent, is_shorter));
    }
    if (is_shorter) {
      AGBOX_TRY_VOID(note(path, "became shorter while it was copied, and ends with zeros"));
    }
    return write(tar_padding(entry.stored_bytes()));
  }

  Result<> put_extent(int file, std::string_view path, const TarExtent& extent, bool& is_shorter) {
    for (std::uint64_t done = 0; done < extent.length;) {
      if (used_ == buffer_.size()) AGBOX_TRY_VOID(flush());
      const std::span<char> room = std::span(buffer_).subspan(used_);
      const auto wanted =
          static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), extent.length - done));
      ssize_t got =
          is_shorter ? 0
                     : ::pread(file, room.data(), wanted, static_cast<off_t>(extent.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed(path, errno);
      if (got == 0) {  // the header has announced its size
        is_shorter = true;
        std::ranges::fill(room.first(wanted), '\0');
        got = static_cast<ssize_t>(wanted);
      }
      used_ += static_cast<std::size_t>(got);
      done += static_cast<std::uint64_t>(got);
      packed_.counts.bytes += static_cast<std::uint64_t>(got);
    }
    return {};
  }

  Result<> write(std::string_view bytes) {
    while (!bytes.empty()) {
      if (used_ == buffer_.size()) AGBOX_TRY_VOID(flush());
      const std::size_t size = std::min(buffer_.size() - used_, bytes.size());
      std::ranges::copy(bytes.substr(0, size), buffer_.begin() + static_cast<long>(used_));
      used_ += size;
      bytes.remove_prefix(size);
    }
    return {};
  }

  Result<> flush() {
    if (used_ == 0) return {};
    AGBOX_TRY_VOID(sink_(std::string_view(buffer_.data(), used_)));
    used_ = 0;
    if (progress_) progress_(packed_.counts);
    return {};
  }

  const std::string& path_;
  std::string root_name_;
  const TreeLimits& limits_;
  const TarSink& sink_;
  const TreeProgress& progress_;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
  PackedTree packed_;
};

}  // namespace

Result<PackedTree> pack_live_tree(const std::string& path, const TreeLimits& limits,
                                  const TarSink& sink, const TreeProgress& progress) {
  return LivePacking(path, limits, sink, progress).run();
}

}  // namespace agbox
