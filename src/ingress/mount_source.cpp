// SPDX-License-Identifier: Apache-2.0
#include "ingress/mount_source.h"

#include <fcntl.h>
#include <sys/stat.h>
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
#include "model/reasons.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::uint64_t kNoLinks = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

std::string name_of(SourceUse use) {
  return use == SourceUse::Mount ? "mount source" : "copy source";
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
Result<> check_readable(int fd, const std::string& path, mode_t mode) {
  const int needed = S_ISDIR(mode) ? R_OK | X_OK : R_OK;
  if (::faccessat(fd, "", needed, AT_EACCESS | AT_EMPTY_PATH) == 0) return {};
  return invalid_argument("mount source " + path + " cannot be read by the daemon's user: " +
                          std::strerror(errno) + "; change its owner or mode");
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

Result<> check_writable(const PinnedSource& source, const struct stat& status,
                        const RuntimeIdentity& user) {
  const std::string what = "mount source " + source.path;
  struct statvfs filesystem{};
  if (::fstatvfs(source.fd.get(), &filesystem) == 0 && (filesystem.f_flag & ST_RDONLY) != 0) {
    return invalid_argument(what +
                            " cannot be writable: its filesystem is mounted read-only; leave "
                            "writable out");
  }
  if (may_write(source.fd.get(), status, user)) return {};
  return invalid_argument(what + " cannot be writable: commands run as uid " +
                          std::to_string(user.uid) + " and gid " + std::to_string(user.gid) +
                          ", which may not write to it; change its owner or mode, or leave "
                          "writable out");
}

std::string read_boot_id() {
  return read_text_file("/proc/sys/kernel/random/boot_id").value_or("");
}

Result<PinnedSource> resolve_mount_source(const SourceRequest& request, const SourceRules& rules) {
  AGBOX_TRY(path, expanded(request, rules.home));
  AGBOX_TRY(real, with_real_parents(request.use, path));
  PinnedSource source{
      .fd = open_beneath(AT_FDCWD, real.c_str(), O_PATH, kNoLinks), .path = real, .identity = {}};
  if (!source.fd) {
    const int problem = errno;
    if (problem == EMFILE || problem == ENFILE) {
      return fail(reason::kResourceExhausted, name_of(request.use) + " " + path +
                                                  " cannot be opened: " + std::strerror(problem));
    }
    return problem == ELOOP ? source_is_link(request.use, path)
                            : invalid_source(request.use, path, problem);
  }
  struct stat status{};
  if (::fstat(source.fd.get(), &status) != 0) return invalid_source(request.use, path, errno);
  AGBOX_TRY_VOID(check_kind(request.use, path, status.st_mode));
  if (real.size() >= PATH_MAX || to_utf8(real) != real) {
    return invalid_argument(name_of(request.use) + " " + path +
                            " is not possible: with its links resolved it is not UTF-8, or longer "
                            "than 4095 bytes");
  }
  if (const auto permitted = rules.forbidden.check(source.fd.get(), real, rules.engine_files);
      !permitted) {
    return invalid_argument(name_of(request.use) + " " + permitted.error().message());
  }
  if (request.use == SourceUse::Mount) {
    AGBOX_TRY_VOID(check_readable(source.fd.get(), path, status.st_mode));
  }
  if (request.is_writable) AGBOX_TRY_VOID(check_writable(source, status, rules.user));
  source.identity = {.device = status.st_dev, .inode = status.st_ino};
  return source;
}

Result<PinnedSource> reopen_mount_source(const KnownSource& known, const std::string& boot_id) {
  const std::string& path = known.path;
  const std::string what = name_of(known.use) + " " + path;
  const auto changed = [&](const std::string& how) {
    return fail(reason::kMountChanged, what + " " + how +
                                           " since the sandbox was created; restore it, or create "
                                           "the sandbox again");
  };
  PinnedSource source{
      .fd = open_beneath(AT_FDCWD, path.c_str(), O_PATH, kNoLinks), .path = path, .identity = {}};
  if (!source.fd) {
    if (errno == ELOOP) return changed("became a symbolic link, or one of its parents did,");
    if (errno == ENOENT || errno == ENOTDIR) return changed("was removed");
    return fail(reason::kHostNotReady, what + " cannot be opened: " + std::strerror(errno));
  }
  const auto identity = identity_of(source.fd.get());
  if (!identity) {
    return fail(reason::kHostNotReady, what + " cannot be inspected: " + std::strerror(errno));
  }
  const bool is_same_device = identity->device == known.identity.device || boot_id != known.boot_id;
  if (!is_same_device || identity->inode != known.identity.inode)
    return changed("was replaced by another file or directory");
  source.identity = *identity;
  return source;
}

}  // namespace

Result<ResolvedSources> resolve_mount_sources(const std::vector<SourceRequest>& requests,
                                              const SourceRules& rules) {
  ResolvedSources resolved{.sources = {}, .boot_id = read_boot_id()};
  for (const SourceRequest& request : requests) {
    AGBOX_TRY(source, resolve_mount_source(request, rules));
    resolved.sources.push_back(std::move(source));
  }
  return resolved;
}

Result<std::vector<PinnedSource>> reopen_mount_sources(const std::vector<KnownSource>& known) {
  const std::string boot_id = read_boot_id();
  std::vector<PinnedSource> sources;
  for (const KnownSource& one : known) {
    AGBOX_TRY(source, reopen_mount_source(one, boot_id));
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace agbox
