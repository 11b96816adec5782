// SPDX-License-Identifier: Apache-2.0
#include "ingress/tree_packer.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/failpoint.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/shown_path.h"
#include "base/tar/file_extents.h"
#include "base/tar/tar_writer.h"
#include "ingress/tree_links.h"
#include "model/copy/exclude_patterns.h"
#include "model/copy/gitignore.h"

namespace agbox {
namespace {

constexpr std::size_t kMaxGitignore = std::size_t{1} << 20;
constexpr std::string_view kReplaced = "replaced while it was copied";
constexpr int kReading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

std::unexpected<Error> refused(std::string message) {
  return fail(reason::kInvalidArgument, std::move(message));
}

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

// An entry of a directory that is being walked.
struct Found {
  int directory;            // a descriptor
  std::string_view parent;  // path of the directory below the root
  const std::string& path;  // below the root
  const char* name;
  mode_t type;  // S_IFMT bits; as the directory has it, so it may be outdated
};

bool is_same_time(const timespec& one, const timespec& other) {
  return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

class Packing {
 public:
  Packing(TreeSource source, UniqueFd pipe, const PackLimits& limits, PackProgress& progress)
      : source_(std::move(source)),
        excluded_(std::move(source_.exclude_patterns)),
        limits_(limits),
        progress_(progress),
        out_(std::move(pipe), progress.abort, limits.stall) {}

  Result<SkippedEntries> run() {
    struct stat status{};
    if (::fstat(source_.root.get(), &status) != 0) return unreadable("", errno);
    if (S_ISDIR(status.st_mode)) {
      AGBOX_TRY_VOID(pack_directory());
    } else {
      AGBOX_TRY_VOID(pack_single_file());
    }
    AGBOX_TRY_VOID(out_.write(tar_end()));
    AGBOX_TRY_VOID(out_.flush());
    return skipped_;
  }

 private:
  using Visit = std::function<Result<>(const Found&)>;

  // --- names in messages ---

  std::string shown(std::string_view path) const {
    return shown_path(source_.path + (path.empty() ? "" : "/") + std::string(path));
  }
  bool is_shadow() const { return source_.use == TreeUse::ShadowCopy; }
  std::string what() const { return is_shadow() ? "builtin tool source" : "copy source"; }
  // A shadow copy leaves out by itself what it cannot pack.
  static std::string leave_out(std::string_view things) {
    return "leave " + std::string(things) + " out with exclude_patterns";
  }
  std::unexpected<Error> unreadable(std::string_view path, int problem) const {
    return refused(what() + " cannot be read: " + shown(path) + ": " + errno_text(problem));
  }
  std::unexpected<Error> changed(std::string_view path) const {
    return refused(what() + " changed while it was copied: " + shown(path) +
                   "; try again when nothing writes to it");
  }
  std::unexpected<Error> not_opened(std::string_view path, int problem) const {
    // Another mount, or what was found is a link by now.
    if (problem == EXDEV) {
      return refused(what() + " contains another filesystem: " + shown(path) + "; " +
                     leave_out("it") + ", or copy it on its own");
    }
    if (problem == ELOOP || problem == ENOENT || problem == ENOTDIR) return changed(path);
    return unreadable(path, problem);
  }

  // The outcome of an entry that cannot be opened, or not any more.
  Result<> not_packed(std::string_view path, int problem) {
    if (!is_shadow()) return not_opened(path, problem);
    switch (problem) {
      case ENOENT:
        return {};
      case EACCES:
      case EPERM:
        return skip(path, errno_text(problem));
      case EXDEV:
        return skip(path, "another filesystem");
      case ELOOP:
      case ENOTDIR:
        return skip(path, kReplaced);
      default:
        return not_opened(path, problem);
    }
  }

  // Of a shadow copy.
  Result<> skip(std::string_view path, std::string_view why) {
    if (++skipped_.entries == 1) {
      skipped_.first = shown(path) + ": " + std::string(why);
    }
    return {};
  }

  // --- the walk ---

  // Calls `visit` for every entry that is not excluded; `visit` calls walk() for the directories
  // that it wants to enter.
  Result<> walk(UniqueFd directory, const std::string& parent, int depth, const Visit& visit) {
    if (depth > limits_.depth) {
      if (is_shadow()) {
        return skip(parent, "deeper than " + std::to_string(limits_.depth) +
                                " directories, so it is empty");
      }
      return refused(what() + " is deeper than " + std::to_string(limits_.depth) +
                     " directories: " + shown(parent) + "; " + leave_out("it"));
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(directory.get()), ::closedir);
    if (!entries) return unreadable(parent, errno);
    directory.release();
    std::string path;
    while (true) {
      if (progress_.abort.is_fired()) return fail(reason::kCancelled, "cancelled");
      errno = 0;
      const dirent* entry = ::readdir(entries.get());
      if (entry == nullptr && errno != 0) return unreadable(parent, errno);
      if (entry == nullptr) return {};
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      ++progress_.steps;
      if (is_shadow() && progress_.entries >= limits_.entries) {
        return skip(parent, "beyond " + std::to_string(limits_.entries) + " entries");
      }
      path = parent;
      path.append(parent.empty() ? "" : "/").append(name);
      if (excluded_.excludes(path)) continue;
      if (path.size() > kMaxTarPath) {
        if (is_shadow()) {
          AGBOX_TRY_VOID(skip(path, "its path is too long"));
          continue;
        }
        return refused(what() + " has a path that is too long: " + shown(path));
      }
      const int at = ::dirfd(entries.get());
      mode_t type = DTTOIF(static_cast<mode_t>(entry->d_type));
      struct stat status{};
      if (entry->d_type == DT_UNKNOWN) {
        if (::fstatat(at, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
          AGBOX_TRY_VOID(not_packed(path, errno));
          continue;
        }
        type = status.st_mode & S_IFMT;
      }
      AGBOX_TRY_VOID(visit(
          {.directory = at, .parent = parent, .path = path, .name = entry->d_name, .type = type}));
    }
  }

  Result<UniqueFd> open_root() {
    UniqueFd root = open_beneath(source_.root.get(), ".", O_RDONLY | O_DIRECTORY, kInTree);
    if (!root) return unreadable("", errno);
    return root;
  }

  // Sets errno on failure.
  static UniqueFd open_directory(const Found& found) {
    return open_beneath(found.directory, found.name, kReading | O_DIRECTORY, kInTree);
  }

  // The error is an errno.
  static std::expected<std::string, int> read_link(const Found& found) {
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlinkat(found.directory, found.name, text.data(), text.size());
    // It is no link any more: as an open that follows none would say.
    if (length < 0) return std::unexpected(errno == EINVAL ? ELOOP : errno);
    return std::string(text.data(), static_cast<std::size_t>(length));
  }

  // --- links to the outside that the tree's .gitignore knows ---

  Result<> read_gitignore(int root) {
    const UniqueFd file = open_beneath(root, ".gitignore", kReading, kInTree);
    struct stat status{};
    if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
    const auto text = read_all(file.get(), kMaxGitignore);
    if (!text && text.error() == EFBIG) {
      return refused("copy source has a file of more than 1 MiB: " + shown(".gitignore"));
    }
    if (!text) return unreadable(".gitignore", text.error());
    gitignore_ = Gitignore(*text);
    return {};
  }

  // What is stored for the link; nullopt if it leads outside.
  Result<std::optional<std::string>> target_inside(const Found& found, std::string_view target) {
    auto inside = links_->target_inside(found.parent, target);
    if (inside) return std::move(*inside);
    return refused(what() + " has symbolic links that take too long to resolve: " + shown("") +
                   ", at " + shown(found.path) + "; " + leave_out("them"));
  }

  // A directory that is ignored and contains a link to the outside is left out as a whole, so it
  // must be known before it is packed.
  Result<> find_left_out(UniqueFd root) {
    if (gitignore_.is_empty()) return {};
    Visit visit;
    int depth = 0;
    visit = [&](const Found& found) -> Result<> {
      if (found.type == S_IFDIR) {
        UniqueFd directory = open_directory(found);
        if (!directory) return not_opened(found.path, errno);
        ++depth;
        auto walked = walk(std::move(directory), found.path, depth, visit);
        --depth;
        return walked;
      }
      if (found.type != S_IFLNK) return {};
      const auto target = read_link(found);
      if (!target) return not_opened(found.path, target.error());
      AGBOX_TRY(inside, target_inside(found, *target));
      if (inside) return {};
      for (std::size_t slash = found.path.find('/'); slash != std::string::npos;
           slash = found.path.find('/', slash + 1)) {
        if (!gitignore_.matches(std::string_view(found.path).substr(0, slash + 1))) continue;
        left_out_.insert(found.path.substr(0, slash));
        break;
      }
      return {};
    };
    return walk(std::move(root), "", 0, visit);
  }

  // --- packing ---

  Result<> pack_directory() {
    AGBOX_TRY(root, open_root());
    if (!is_shadow()) {
      links_.emplace(source_.root.get(), source_.path, limits_.lookups);
      AGBOX_TRY_VOID(read_gitignore(root.get()));
      AGBOX_TRY(again, open_root());
      AGBOX_TRY_VOID(find_left_out(std::move(again)));
    }
    visit_ = [this](const Found& found) { return pack(found); };
    return walk(std::move(root), "", 0, visit_);
  }

  Result<> pack(const Found& found) {
    switch (found.type) {
      case S_IFDIR:
        return pack_subdirectory(found);
      case S_IFREG:
        return pack_file(found);
      case S_IFLNK:
        return pack_link(found);
      case S_IFIFO:
        return unsupported(found.path, "a FIFO");
      case S_IFSOCK:
        return unsupported(found.path, "a socket");
      default:
        return unsupported(found.path, "a device");
    }
  }

  Result<> unsupported(std::string_view path, std::string_view kind) const {
    if (is_shadow()) return {};
    return refused(what() + " contains " + std::string(kind) + ": " + shown(path) + "; " +
                   leave_out("it"));
  }

  Result<> pack_subdirectory(const Found& found) {
    if (left_out_.contains(found.path)) return {};
    UniqueFd directory = open_directory(found);
    if (!directory) return not_packed(found.path, errno);
    struct stat status{};
    if (::fstat(directory.get(), &status) != 0) return unreadable(found.path, errno);
    AGBOX_TRY_VOID(put_header(entry_of(TarEntry::Kind::Directory, found.path, status)));
    ++depth_;
    auto walked = walk(std::move(directory), found.path, depth_, visit_);
    --depth_;
    return walked;
  }

  Result<> pack_link(const Found& found) {
    const auto target = read_link(found);
    if (!target) return not_packed(found.path, target.error());
    if (is_shadow()) {
      const auto inside = target_inside_by_text(source_.path, found.parent, *target);
      const bool fits = inside && inside->size() <= kMaxTarPath;
      return put_link(found, fits ? *inside : *target);
    }
    AGBOX_TRY(inside, target_inside(found, *target));
    if (!inside && gitignore_.matches(found.path)) return {};
    if (!inside) return refused("copy source contains external symlink: " + shown(found.path));
    return put_link(found, std::move(*inside));
  }

  Result<> put_link(const Found& found, std::string target) {
    struct stat status{};
    if (::fstatat(found.directory, found.name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      return not_packed(found.path, errno);
    }
    TarEntry entry = entry_of(TarEntry::Kind::Symlink, found.path, status);
    entry.target = std::move(target);
    if (entry.target.size() > kMaxTarPath) {
      return refused(what() +
                     " has a symlink whose relative target is too long: " + shown(found.path));
    }
    return put_header(entry);
  }

  Result<> pack_file(const Found& found) {
    const UniqueFd file = open_beneath(found.directory, found.name, kReading, kInTree);
    if (!file) return not_packed(found.path, errno);
    return put_file(file.get(), found.path, found.path);
  }

  Result<> pack_single_file() {
    const std::string link = "/proc/self/fd/" + std::to_string(source_.root.get());
    const UniqueFd file(::open(link.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file) return unreadable("", errno);
    return put_file(file.get(), "", source_.path.substr(source_.path.rfind('/') + 1));
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
    if (++progress_.entries > limits_.entries) {
      return refused(what() + " has more than " + std::to_string(limits_.entries) +
                     " entries: " + shown("") + "; " + leave_out("some"));
    }
    if (progress_.bytes + entry.stored_bytes() > limits_.bytes) {
      return refused(what() + " has more than " + std::to_string(limits_.bytes) +
                     " bytes: " + shown("") + "; " + leave_out("some"));
    }
    return out_.write(tar_header(entry));
  }

  // `path` is below the root, `name` is that of the entry.
  Result<> put_file(int file, std::string_view path, std::string_view name) {
    struct stat status{};
    if (::fstat(file, &status) != 0) return unreadable(path, errno);
    if (!S_ISREG(status.st_mode)) return is_shadow() ? skip(path, kReplaced) : changed(path);
    TarEntry entry = entry_of(TarEntry::Kind::File, std::string(name), status);
    entry.size = static_cast<std::uint64_t>(status.st_size);
    if (auto extents = extents_of(file, status)) {
      entry.is_sparse = true;
      entry.extents = std::move(*extents);
    } else {
      entry.extents = {{.offset = 0, .length = entry.size}};
    }
    if (is_shadow() && progress_.bytes + entry.stored_bytes() > limits_.bytes) {
      return skip(path,
                  "the copy would have more than " + std::to_string(limits_.bytes) + " bytes");
    }
    AGBOX_TRY_VOID(put_header(entry));
    bool is_whole = true;
    for (const TarExtent& extent : entry.extents) {
      AGBOX_TRY(is_read, put_extent(file, path, extent));
      is_whole = is_whole && is_read;
    }
    if (!is_whole) AGBOX_TRY_VOID(skip(path, "became shorter while it was copied"));
    struct stat after{};
    if (::fstat(file, &after) != 0) return unreadable(path, errno);
    const bool is_same =
        after.st_size == status.st_size && is_same_time(after.st_mtim, status.st_mtim);
    if (!is_same && !is_shadow()) return changed(path);
    return out_.write(tar_padding(entry.stored_bytes()));
  }

  // False if the file of a shadow copy has become shorter: zeros take the place of the rest.
  Result<bool> put_extent(int file, std::string_view path, const TarExtent& extent) {
    bool is_whole = true;
    for (std::uint64_t done = 0; done < extent.length;) {
      AGBOX_TRY(room, out_.room());
      const std::size_t wanted =
          static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), extent.length - done));
      ssize_t got = ::pread(file, room.data(), wanted, static_cast<off_t>(extent.offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return unreadable(path, errno);
      if (got == 0 && !is_shadow()) return changed(path);  // it has become shorter
      if (got == 0) {
        is_whole = false;
        std::ranges::fill(room.first(wanted), '\0');
        got = static_cast<ssize_t>(wanted);
      }
      AGBOX_FAILPOINT("copy.part");
      out_.commit(static_cast<std::size_t>(got));
      done += static_cast<std::uint64_t>(got);
      progress_.bytes += static_cast<std::uint64_t>(got);
      ++progress_.steps;
    }
    return is_whole;
  }

  TreeSource source_;
  ExcludePatterns excluded_;
  const PackLimits& limits_;
  PackProgress& progress_;
  StreamWriter out_;
  std::optional<TreeLinks> links_;  // of a shadow copy, no link is resolved
  Gitignore gitignore_;
  std::set<std::string> left_out_;  // directories, see find_left_out()
  SkippedEntries skipped_;
  Visit visit_;
  int depth_ = 0;
};

}  // namespace

Result<SkippedEntries> pack_tree(TreeSource source, UniqueFd pipe, const PackLimits& limits,
                                 PackProgress& progress) {
  return Packing(std::move(source), std::move(pipe), limits, progress).run();
}

}  // namespace agbox
