// SPDX-License-Identifier: Apache-2.0
#include "ingress/mount_source.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/open_beneath.h"
#include "base/text_file.h"
#include "base/utf8.h"
#include "ingress/socket_walk.h"
#include "model/reasons.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

bool is_of_tool(SourceUse use) {
  return use != SourceUse::Mount && use != SourceUse::Copy;
}

// As existing clients know it: "lstat /x: no such file or directory".
std::unexpected<Error> invalid_source(SourceUse use, const std::string& path, int error_number) {
  std::string text = std::strerror(error_number);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return invalid_argument(name_of(use) + " path is invalid: lstat " + path + ": " + text);
}

std::unexpected<Error> source_is_link(SourceUse use, const std::string& path) {
  return invalid_argument(name_of(use) + " must not be a symlink: " + path);
}

Result<std::string> expanded(const SourceRequest& request, const std::filesystem::path& home) {
  const std::string& path = request.path;
  if (!path.starts_with('~')) return path;
  if (!home.is_absolute()) {
    return invalid_argument(name_of(request.use) + " " + path +
                            ": agboxd has no HOME, which ~ stands for; use an absolute path");
  }
  if (path.size() <= 2) return home.lexically_normal().string();
  return (home / path.substr(2)).lexically_normal().string();
}

// The path with every link of its parents resolved; the last component stays as it is.
Result<std::string> with_real_parents(SourceUse use, const std::string& path) {
  if (path == "/") return path;
  const std::filesystem::path whole(path);
  const std::unique_ptr<char, decltype(&std::free)> parent(
      ::realpath(whole.parent_path().c_str(), nullptr), &std::free);
  if (!parent) return invalid_source(use, path, errno);
  return (std::filesystem::path(parent.get()) / whole.filename()).string();
}

Result<> check_kind(SourceUse use, const std::string& path, mode_t mode) {
  if (S_ISREG(mode) || S_ISDIR(mode)) return {};
  // Whether it is a socket of the right user is for the caller to say.
  if (is_of_tool(use)) return {};
  if (use == SourceUse::Copy) {
    return invalid_argument("copy source must be a file or directory: " + path);
  }
  if (S_ISSOCK(mode)) {
    return invalid_argument("mount source must not be a Unix socket: " + path +
                            ": the sandbox could control the program that listens on it");
  }
  return invalid_argument("mount source must be a file, directory, or unix socket: " + path);
}

// Root in the container reads everything below a source, so at least the source itself must be open
// to the daemon's user.
Result<> check_readable(int fd, const std::string& what, mode_t mode) {
  const int needed = S_ISDIR(mode) ? R_OK | X_OK : R_OK;
  if (::faccessat(fd, "", needed, AT_EACCESS | AT_EMPTY_PATH) == 0) return {};
  return invalid_argument(what + " cannot be read by the daemon's user: " + std::strerror(errno) +
                          "; change its owner or mode");
}

// An access control list may permit what the mode does not.
bool has_access_list(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return ::getxattr(path.c_str(), "system.posix_acl_access", nullptr, 0) > 0;
}

bool may_write(int fd, const struct stat& status, const RuntimeIdentity& user) {
  if (user.uid == 0) return true;
  const mode_t needed = status.st_uid == user.uid   ? S_IWUSR
                        : status.st_gid == user.gid ? S_IWGRP
                                                    : S_IWOTH;
  if ((status.st_mode & needed) != 0) return true;
  return has_access_list(fd) && ::faccessat(fd, "", W_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
}

Result<> check_writable(const PinnedSource& source, SourceUse use, const struct stat& status,
                        const RuntimeIdentity& user) {
  const std::string what = name_of(use) + " " + source.path;
  const std::string otherwise = use == SourceUse::Mount
                                    ? "mount it read-only (writable: false, or -v ...:ro)"
                                    : "leave the tool out";
  struct statvfs filesystem{};
  if (::fstatvfs(source.fd.get(), &filesystem) == 0 && (filesystem.f_flag & ST_RDONLY) != 0) {
    return invalid_argument(what + " cannot be writable: its filesystem is mounted read-only; " +
                            otherwise);
  }
  if (may_write(source.fd.get(), status, user)) return {};
  return invalid_argument(what + " cannot be writable: commands run as uid " +
                          std::to_string(user.uid) + " and gid " + std::to_string(user.gid) +
                          ", which may not write to it; change its owner or mode, or " + otherwise);
}

std::string read_boot_id() {
  return read_text_file("/proc/sys/kernel/random/boot_id").value_or("");
}

std::unexpected<Error> cannot_open(SourceUse use, const std::string& path, int error_number) {
  if (error_number == EMFILE || error_number == ENFILE) {
    return fail(reason::kResourceExhausted,
                name_of(use) + " " + path + " cannot be opened: " + std::strerror(error_number));
  }
  return error_number == ELOOP ? source_is_link(use, path)
                               : invalid_source(use, path, error_number);
}

// When a file of a lower layer is written to for the first time, it is copied to the upper one: its
// inode stays the same, and its time of creation becomes that of the copy.
bool is_on_overlay(int fd) {
  struct statfs filesystem{};
  return ::fstatfs(fd, &filesystem) == 0 && filesystem.f_type == OVERLAYFS_SUPER_MAGIC;
}

// In nanoseconds since 1970; 0 if the filesystem has none. With the inode it distinguishes a
// file from one that was created after it was removed.
std::int64_t creation_time(int fd) {
  if (is_on_overlay(fd)) return 0;
  constexpr std::int64_t kNanoseconds = 1'000'000'000;
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BTIME, &status) != 0 ||
      (status.stx_mask & STATX_BTIME) == 0) {
    return 0;
  }
  return status.stx_btime.tv_sec * kNanoseconds + status.stx_btime.tv_nsec;
}

Result<PinnedSource> resolve_mount_source(const SourceRequest& request, const SourceRules& rules) {
  AGBOX_TRY(path, expanded(request, rules.home));
  AGBOX_TRY(real, with_real_parents(request.use, path));
  UniqueFd fd = open_beneath(AT_FDCWD, real.c_str(), O_PATH, kNoLinks);
  if (!fd) return cannot_open(request.use, path, errno);
  return pin_source({.fd = std::move(fd),
                     .path = real,
                     .asked = path,
                     .is_writable = request.is_writable,
                     .use = request.use},
                    rules);
}

Result<> check_permitted(const SourceRequest& source, int fd, const ForbiddenSources& forbidden,
                         const std::vector<std::filesystem::path>& engine_files, uid_t user) {
  return source.use == SourceUse::ToolSocket
             ? forbidden.check_socket(fd, source.path, engine_files, user)
             : forbidden.check(fd, source.path, engine_files);
}

bool is_successor(const KnownSource& known, const struct stat& now) {
  const bool has_kind = (known.use == SourceUse::ToolFile && S_ISREG(now.st_mode)) ||
                        (known.use == SourceUse::ToolSocket && S_ISSOCK(now.st_mode));
  return has_kind && now.st_uid == known.user;
}

// As when a sandbox is accepted.
Result<> check_successor(const KnownSource& known, const PinnedSource& source,
                         const ForbiddenSources& forbidden) {
  if (known.use == SourceUse::ToolSocket) {
    AGBOX_TRY(walked, walk_to_socket(source.path, {.user = known.user, .max_links = 0}));
    if (identity_of(walked.fd.get()) != source.identity) {
      return invalid_argument(source.path + " is being replaced");
    }
  }
  return check_permitted({.path = source.path, .use = known.use}, source.fd.get(), forbidden,
                         /*engine_files=*/{}, known.user);
}

// Without `forbidden`, no successor is accepted.
Result<PinnedSource> reopen_source(const KnownSource& known, const std::string& boot_id,
                                   const ForbiddenSources* forbidden) {
  const std::string& path = known.path;
  const std::string what = name_of(known);
  const auto changed = [&](const std::string& how) {
    return fail(reason::kMountChanged, what + " " + how +
                                           " since the sandbox was created; restore it, or create "
                                           "the sandbox again");
  };
  PinnedSource source{.fd = open_beneath(AT_FDCWD, path.c_str(), O_PATH, kNoLinks), .path = path};
  if (!source.fd) {
    if (errno == ELOOP) return changed("became a symbolic link, or one of its parents did,");
    if (errno == ENOENT || errno == ENOTDIR) return changed("was removed");
    return fail(reason::kHostNotReady, what + " cannot be opened: " + std::strerror(errno));
  }
  struct stat status{};
  if (::fstat(source.fd.get(), &status) != 0) {
    return fail(reason::kHostNotReady, what + " cannot be inspected: " + std::strerror(errno));
  }
  source.identity = {.device = status.st_dev, .inode = status.st_ino};
  source.birth_time = creation_time(source.fd.get());
  const bool is_same_device =
      source.identity.device == known.identity.device || boot_id != known.boot_id;
  const bool is_same_birth =
      source.birth_time == known.birth_time || source.birth_time == 0 || known.birth_time == 0;
  const bool is_same =
      is_same_device && is_same_birth && source.identity.inode == known.identity.inode;
  if (is_same) return source;
  if (forbidden == nullptr || !is_successor(known, status)) {
    return changed("was replaced by another file or directory");
  }
  if (const auto permitted = check_successor(known, source, *forbidden); !permitted) {
    return changed("was replaced by another one, which is refused (" + permitted.error().message() +
                   "),");
  }
  return source;
}

}  // namespace

std::string name_of(SourceUse use) {
  switch (use) {
    case SourceUse::Mount:
      return "mount source";
    case SourceUse::Copy:
      return "copy source";
    case SourceUse::ToolDirectory:
    case SourceUse::ToolFile:
    case SourceUse::ToolSocket:
      break;
  }
  return "source";
}

std::string name_of(const SourceRequest& request) {
  return name_of(request.use) + " " + request.path;
}

std::string name_of(const KnownSource& known) {
  return (is_of_tool(known.use) ? "builtin tool " : "") + name_of(known.use) + " " + known.path;
}

Result<PinnedSource> pin_source(OpenSource opened, const SourceRules& rules) {
  const std::string& path = opened.asked;
  const SourceUse use = opened.use;
  PinnedSource source{.fd = std::move(opened.fd), .path = std::move(opened.path)};
  struct stat status{};
  if (::fstat(source.fd.get(), &status) != 0) return invalid_source(use, path, errno);
  AGBOX_TRY_VOID(check_kind(use, path, status.st_mode));
  if (source.path.size() >= PATH_MAX || to_utf8(source.path) != source.path) {
    return invalid_argument(name_of(use) + " " + path +
                            " is not possible: with its links resolved it is not UTF-8, or longer "
                            "than 4095 bytes");
  }
  if (const auto permitted = check_permitted({.path = source.path, .use = use}, source.fd.get(),
                                             rules.forbidden, rules.engine_files, rules.user.uid);
      !permitted) {
    return invalid_argument(name_of(use) + " " + permitted.error().message());
  }
  if (use != SourceUse::Copy && use != SourceUse::ToolSocket) {
    AGBOX_TRY_VOID(check_readable(source.fd.get(), name_of(use) + " " + path, status.st_mode));
  }
  if (opened.is_writable) AGBOX_TRY_VOID(check_writable(source, use, status, rules.user));
  source.identity = {.device = status.st_dev, .inode = status.st_ino};
  source.birth_time = creation_time(source.fd.get());
  return source;
}

Result<ResolvedSources> resolve_mount_sources(const std::vector<SourceRequest>& requests,
                                              const SourceRules& rules) {
  ResolvedSources resolved{.sources = {}, .boot_id = read_boot_id()};
  for (const SourceRequest& request : requests) {
    if (rules.inspected != nullptr) rules.inspected->set(name_of(request));
    AGBOX_TRY(source, resolve_mount_source(request, rules));
    resolved.sources.push_back(std::move(source));
  }
  return resolved;
}

Result<std::vector<PinnedSource>> reopen_mount_sources(const std::vector<KnownSource>& known,
                                                       const ForbiddenSources& forbidden,
                                                       InspectedNow* inspected) {
  const std::string boot_id = read_boot_id();
  std::vector<PinnedSource> sources;
  for (const KnownSource& one : known) {
    if (inspected != nullptr) inspected->set(name_of(one));
    AGBOX_TRY(source, reopen_source(one, boot_id, &forbidden));
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<PinnedSource> reopen_copy_source(const KnownSource& known) {
  return reopen_source(known, read_boot_id(), nullptr);
}

}  // namespace agbox
