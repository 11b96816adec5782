// SPDX-License-Identifier: Apache-2.0
#include "base/tar/target_unpacker.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hex.h"
#include "base/path_within.h"
#include "base/shown_path.h"
#include "base/tar/entry_path.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

// While it is filled: only for us.
constexpr mode_t kNewDirectory = 0700;
// Of a directory that has no entry of its own.
constexpr mode_t kImpliedDirectory = 0755;

// For what is renamed once it is complete.
std::string draft_name() {
  std::array<unsigned char, 8> bytes{};
  AGBOX_CHECK(::getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
              "getrandom");
  return ".agbox-cp-" + to_hex(bytes);
}

class TargetUnpacking {
 public:
  TargetUnpacking(const UnpackTarget& target, const TreeLimits& limits, TarReader::Source stream,
                  const TreeProgress& progress)
      : target_(target), limits_(limits), progress_(progress), reader_(std::move(stream)) {}

  Result<TreeCounts> run() {
    auto done = unpack();
    if (done) return counts_;
    if (counts_.entries == 0) return std::unexpected(done.error());
    return fail(done.error().reason(), done.error().message() + "; entries copied before: " +
                                           std::to_string(counts_.entries));
  }

 private:
  // A directory on the way to the entry that is unpacked.
  struct OpenDirectory {
    std::string path;  // below the base
    UniqueFd fd;
    std::optional<TarEntry> attributes{};  // to be set when nothing more is created in it
  };

  // --- messages ---

  // `path` is below the base.
  std::string shown(std::string_view path) const {
    if (path.empty()) return shown_path(base_);
    return shown_path(base_ + (base_.ends_with('/') ? "" : "/") + std::string(path));
  }
  std::unexpected<Error> failed(std::string_view path, int number) const {
    const Error error = path_error("", number);
    return fail(error.reason(), shown(path) + error.message());
  }
  std::unexpected<Error> conflict(std::string_view path, std::string_view what) const {
    return fail(reason::kPathConflict, shown(path) + ": " + std::string(what));
  }
  static std::unexpected<Error> bad_stream(std::string what) {
    return fail(reason::kInvalidArgument, std::move(what));
  }

  // --- the target ---

  Result<> unpack() {
    AGBOX_TRY(first, reader_.next());
    // Nothing of the target is touched before the stream has begun.
    if (target_.placement == TreePlacement::Content) {
      AGBOX_TRY_VOID(open_content_target(nullptr));
      return unpack_entries(std::move(first));
    }
    if (!first) return bad_stream("the stream has no entries");
    AGBOX_TRY(root, clean_path(first->path));
    if (root.contains('/')) {
      return bad_stream(shown_path(first->path) + ": the stream does not begin with its root");
    }
    if (root.empty() && !target_.root_name.empty()) {
      return bad_stream("the stream has a root without a name, which is not what was requested");
    }
    if (first->kind != TarEntry::Kind::Directory) {
      if (root.empty()) return bad_stream("a file without a name");
      return unpack_single(std::move(*first), root);
    }
    root_ = root;
    if (root.empty()) {
      AGBOX_TRY_VOID(open_content_target(&*first));
    } else {
      AGBOX_TRY_VOID(open_root_target(*first));
    }
    count();
    AGBOX_TRY(next, reader_.next());
    return unpack_entries(std::move(next));
  }

  struct TargetSeen {
    bool exists = false;
    bool is_directory = false;
  };
  Result<TargetSeen> look_at_target() const {
    struct stat status{};
    if (::fstatat(AT_FDCWD, target_.path.c_str(), &status, 0) == 0) {
      if (S_ISDIR(status.st_mode) && is_refused_link()) {
        return fail(reason::kPathConflict,
                    shown_path(target_.path) +
                        ": is a symbolic link to a directory; add a slash to copy to where it "
                        "leads");
      }
      return TargetSeen{.exists = true, .is_directory = S_ISDIR(status.st_mode)};
    }
    if (errno == ENOENT) return TargetSeen{};
    // A file with a slash after its name.
    if (errno == ENOTDIR && target_.path.ends_with('/')) return not_a_directory();
    return std::unexpected(path_error(target_.path, errno));
  }
  bool is_refused_link() const {
    struct stat link{};
    return target_.refuses_link && !target_.path.ends_with('/') &&
           ::lstat(target_.path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
  }
  std::unexpected<Error> not_a_directory() const {
    return fail(reason::kPathConflict, shown_path(target_.path) + ": is not a directory");
  }

  Result<UniqueFd> open_existing(const std::string& path) const {
    // The target may have become a link since it was inspected.
    const bool is_target = target_.refuses_link && path == target_.path && !path.ends_with('/');
    UniqueFd fd(
        ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | (is_target ? O_NOFOLLOW : 0)));
    if (fd) return fd;
    if (errno == ENOENT) {
      return fail(reason::kPathNotFound,
                  shown_path(path) + ": does not exist; create this directory first");
    }
    return std::unexpected(path_error(path, errno));
  }

  // The parent of the target and the name of the target in it.
  struct Place {
    std::string parent;
    std::string name;
  };
  Place place_of_target() const {
    std::string_view path = target_.path;
    while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {.parent = ".", .name = std::string(path)};
    return {.parent = std::string(path.substr(0, std::max<std::size_t>(slash, 1))),
            .name = std::string(path.substr(slash + 1))};
  }

  // Creates the target, which does not exist, as the directory that everything goes into.
  Result<> make_target(const TarEntry* attributes) {
    const Place place = place_of_target();
    AGBOX_TRY(parent, open_existing(place.parent));
    base_ = target_.path;
    if (place.name.empty() || place.name == "." || place.name == "..") return failed("", ENOENT);
    AGBOX_TRY(fd, make_directory(parent.get(), place.name, "", attributes != nullptr));
    if (!fd) return conflict("", "is a symbolic link to nothing, or was created meanwhile");
    OpenDirectory made{.path = "", .fd = std::move(fd)};
    if (attributes != nullptr) made.attributes = *attributes;
    open_.push_back(std::move(made));
    return {};
  }

  Result<> open_content_target(const TarEntry* attributes) {
    AGBOX_TRY(seen, look_at_target());
    if (seen.exists && !seen.is_directory) return not_a_directory();
    if (!seen.exists) return make_target(attributes);
    base_ = target_.path;
    AGBOX_TRY(fd, open_existing(target_.path));
    open_.push_back({.path = "", .fd = std::move(fd)});
    return {};
  }

  Result<> open_root_target(const TarEntry& root) {
    AGBOX_TRY(seen, look_at_target());
    if (seen.exists && !seen.is_directory) {
      return fail(reason::kPathConflict,
                  shown_path(target_.path) +
                      ": is a file, which a directory cannot replace; choose another target");
    }
    if (!seen.exists) return make_target(&root);
    AGBOX_TRY(fd, open_existing(target_.path));
    const std::string name = target_.root_name.empty() ? root_ : target_.root_name;
    base_ = target_.path + (target_.path.ends_with('/') ? "" : "/") + name;
    AGBOX_TRY(directory, open_or_make(fd.get(), name, "", &root));
    open_.push_back(std::move(directory));
    return {};
  }

  // A file or a link.
  Result<> unpack_single(TarEntry entry, const std::string& stream_name) {
    AGBOX_TRY(seen, look_at_target());
    Place place = place_of_target();
    if (seen.is_directory) {
      place = {.parent = target_.path,
               .name = target_.root_name.empty() ? stream_name : target_.root_name};
    } else if (target_.path.ends_with('/')) {
      if (seen.exists) return not_a_directory();
      return fail(reason::kPathNotFound, shown_path(target_.path) +
                                             ": does not exist; create this directory first, or "
                                             "leave out the slash at its end");
    }
    if (place.name.empty() || place.name == "." || place.name == "..") {
      return std::unexpected(path_error(target_.path, ENOENT));
    }
    AGBOX_TRY(parent, open_existing(place.parent));
    base_ = place.parent;
    open_.push_back({.path = "", .fd = std::move(parent)});
    entry.path = place.name;
    AGBOX_TRY_VOID(check_size(entry));
    if (entry.kind == TarEntry::Kind::Symlink) {
      AGBOX_TRY_VOID(put_symlink(entry));
    } else {
      AGBOX_TRY_VOID(put_file(entry, /*as_draft=*/true));
    }
    count();
    AGBOX_TRY(more, reader_.next());
    if (more) return bad_stream(shown_path(more->path) + ": is more than the one file announced");
    return {};
  }

  // --- entries ---

  Result<> unpack_entries(std::optional<TarEntry> entry) {
    while (entry) {
      AGBOX_TRY(path, clean_path(entry->path));
      if (!root_.empty()) AGBOX_TRY_VOID(strip_root(path));
      // The target itself has its attributes, or keeps those that it had.
      if (path.empty() && entry->kind != TarEntry::Kind::Directory) {
        return bad_stream(shown_path(entry->path) + ": a file in the place of its directory");
      }
      if (!path.empty()) AGBOX_TRY_VOID(put(std::move(*entry), std::move(path)));
      AGBOX_TRY(next, reader_.next());
      entry = std::move(next);
    }
    return leave_all_but(0);
  }

  Result<> put(TarEntry entry, std::string path) {
    entry.path = std::move(path);
    AGBOX_TRY_VOID(check_size(entry));
    AGBOX_TRY_VOID(enter(std::string(all_but_last(entry.path))));
    switch (entry.kind) {
      case TarEntry::Kind::File:
        AGBOX_TRY_VOID(put_file(entry, /*as_draft=*/false));
        break;
      case TarEntry::Kind::Directory: {
        AGBOX_TRY(made, open_or_make(directory(), std::string(last_component(entry.path)),
                                     entry.path, &entry));
        open_.push_back(std::move(made));
        break;
      }
      case TarEntry::Kind::Symlink:
        AGBOX_TRY_VOID(put_symlink(entry));
        break;
    }
    count();
    return {};
  }

  Result<> check_size(const TarEntry& entry) const {
    if (counts_.entries >= limits_.entries) {
      return fail(reason::kCopyTooLarge,
                  "more than " + std::to_string(limits_.entries) + " entries; copy less at a time");
    }
    if (entry.stored_bytes() > limits_.bytes - counts_.bytes) {
      return fail(reason::kCopyTooLarge,
                  "more than " + std::to_string(limits_.bytes) + " bytes; copy less at a time");
    }
    return {};
  }

  void count() {
    ++counts_.entries;
    if (progress_) progress_(counts_);
  }

  // Without "./" and repeated slashes; an error if it leads elsewhere.
  static Result<std::string> clean_path(std::string_view path) {
    const auto refused = [&](std::string_view what) {
      return fail(reason::kInvalidArgument, shown_path(path) + ": " + std::string(what));
    };
    if (path.starts_with('/')) return refused("an absolute path, which is not unpacked");
    std::string clean;
    std::size_t depth = 0;
    for (std::string_view rest = path; !rest.empty();) {
      const std::size_t slash = rest.find('/');
      const std::string_view component = rest.substr(0, slash);
      rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
      if (component.empty() || component == ".") continue;
      if (component == "..") return refused("leads out of the target, which is not unpacked");
      if (++depth > kMaxTreeDepth) return refused("is in too many directories");
      clean.append(clean.empty() ? "" : "/").append(component);
    }
    return clean;
  }

  Result<> strip_root(std::string& path) const {
    if (!is_path_within(path, root_)) {
      return bad_stream(shown_path(path) + ": is not below " + shown_path(root_) +
                        ", the root of the stream");
    }
    path.erase(0, std::min(path.size(), root_.size() + 1));
    return {};
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
      AGBOX_TRY(made, open_or_make(directory(), std::string(last_component(next)), next, nullptr));
      open_.push_back(std::move(made));
    }
    return {};
  }

  // `shown_as` is its path below the base.
  Result<UniqueFd> make_directory(int at, const std::string& name, const std::string& shown_as,
                                  bool has_attributes) const {
    if (::mkdirat(at, name.c_str(), has_attributes ? kNewDirectory : kImpliedDirectory) != 0) {
      if (errno == EEXIST) return UniqueFd();
      return failed(shown_as, errno);
    }
    UniqueFd fd(
        ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return failed(shown_as, errno);
    return fd;
  }

  Result<OpenDirectory> open_or_make(int at, const std::string& name, const std::string& path,
                                     const TarEntry* attributes) const {
    AGBOX_TRY(made, make_directory(at, name, path, attributes != nullptr));
    OpenDirectory opened{.path = path, .fd = std::move(made)};
    if (opened.fd) {
      if (attributes != nullptr) opened.attributes = *attributes;
      return opened;
    }
    opened.fd.reset(::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened.fd && (errno == ENOTDIR || errno == ELOOP)) {
      return conflict(path, "is not a directory, but one is copied there");
    }
    if (!opened.fd) return failed(path, errno);
    return opened;
  }

  Result<> leave_all_but(std::size_t kept) {
    while (open_.size() > kept) {
      const OpenDirectory left = std::move(open_.back());
      open_.pop_back();
      if (!left.attributes) continue;
      const auto times = times_of(*left.attributes);
      if (::fchmod(left.fd.get(), left.attributes->mode & target_.kept_bits) != 0 ||
          ::futimens(left.fd.get(), times.data()) != 0) {
        return failed(left.path, errno);
      }
    }
    return {};
  }

  // Fails if there is a directory, which nothing replaces.
  Result<> check_replaceable(const std::string& path, const std::string& name) const {
    struct stat status{};
    if (::fstatat(directory(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode)) {
      return {};
    }
    return conflict(path, "is a directory, which a file cannot replace");
  }

  // Moves what is complete to its name. On failure nothing of it is left.
  Result<> finish(const std::string& path, const std::string& draft, const std::string& name) {
    if (draft == name || ::renameat(directory(), draft.c_str(), directory(), name.c_str()) == 0) {
      return {};
    }
    const int problem = errno;
    ::unlinkat(directory(), draft.c_str(), 0);
    return failed(path, problem);
  }

  Result<> put_symlink(const TarEntry& entry) {
    const std::string name(last_component(entry.path));
    std::string created = name;
    if (::symlinkat(entry.target.c_str(), directory(), name.c_str()) != 0) {
      if (errno != EEXIST) return failed(entry.path, errno);
      AGBOX_TRY_VOID(check_replaceable(entry.path, name));
      created = draft_name();
      if (::symlinkat(entry.target.c_str(), directory(), created.c_str()) != 0) {
        return failed(entry.path, errno);
      }
    }
    const auto times = times_of(entry);
    // Not every filesystem has times of links.
    ::utimensat(directory(), created.c_str(), times.data(), AT_SYMLINK_NOFOLLOW);
    return finish(entry.path, created, name);
  }

  Result<> put_file(const TarEntry& entry, bool as_draft) {
    const std::string name(last_component(entry.path));
    std::string created = name;
    UniqueFd file;
    const auto create = [&] {
      file.reset(::openat(directory(), created.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
      return static_cast<bool>(file);
    };
    if (as_draft || (!create() && errno == EEXIST)) {
      AGBOX_TRY_VOID(check_replaceable(entry.path, name));
      created = draft_name();
      create();
    }
    if (!file) return failed(entry.path, errno);
    if (auto filled = fill(file.get(), entry); !filled) {
      ::unlinkat(directory(), created.c_str(), 0);
      return filled;
    }
    return finish(entry.path, created, name);
  }

  Result<> fill(int file, const TarEntry& entry) {
    unwritten_ = {};
    if (entry.is_sparse) {
      for (const TarExtent& extent : entry.extents) {
        AGBOX_TRY_VOID(put_bytes(file, entry, extent));
      }
      if (::ftruncate(file, static_cast<off_t>(entry.size)) != 0) return failed(entry.path, errno);
    } else {
      AGBOX_TRY_VOID(put_bytes(file, entry, {.offset = 0, .length = entry.size}));
    }
    const auto times = times_of(entry);
    if (::fchmod(file, entry.mode & target_.kept_bits) != 0 ||
        ::futimens(file, times.data()) != 0) {
      return failed(entry.path, errno);
    }
    return {};
  }

  Result<> put_bytes(int file, const TarEntry& entry, const TarExtent& extent) {
    std::uint64_t at = extent.offset;
    const std::uint64_t end = extent.offset + extent.length;
    while (at < end) {
      if (unwritten_.empty()) {
        AGBOX_TRY(bytes, reader_.content());
        AGBOX_CHECK(!bytes.empty(), "an entry has the bytes that it announced");
        unwritten_ = bytes;
      }
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(unwritten_.size(), end - at));
      const ssize_t written = ::pwrite(file, unwritten_.data(), size, static_cast<off_t>(at));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return failed(entry.path, errno);
      unwritten_.remove_prefix(static_cast<std::size_t>(written));
      at += static_cast<std::uint64_t>(written);
      counts_.bytes += static_cast<std::uint64_t>(written);
      if (progress_) progress_(counts_);
    }
    return {};
  }

  const UnpackTarget& target_;
  const TreeLimits& limits_;
  const TreeProgress& progress_;
  TarReader reader_;
  std::string base_;            // what paths in messages are below
  std::string root_;            // of the stream, not part of paths
  std::string_view unwritten_;  // of the reader's content
  std::vector<OpenDirectory> open_;
  TreeCounts counts_;
};

}  // namespace

Result<TreeCounts> unpack_at(const UnpackTarget& target, const TreeLimits& limits,
                             TarReader::Source stream, const TreeProgress& progress) {
  return TargetUnpacking(target, limits, std::move(stream), progress).run();
}

}  // namespace agbox
