// SPDX-License-Identifier: Apache-2.0
#include "ingress/forbidden_sources.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/open_beneath.h"
#include "base/path_within.h"
#include "base/text_file.h"
#include "ingress/file_identity.h"
#include "model/spec/mount_point.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::string_view kOldRun = "/var/run";

constexpr std::array<std::string_view, 8> kForbiddenDirectories = {"/proc",
                                                                   "/sys",
                                                                   "/dev",
                                                                   "/boot",
                                                                   "/var/lib/docker",
                                                                   "/var/lib/containerd",
                                                                   "/var/lib/containers",
                                                                   kOldRun};

// How the names of what starts programs on the host begin, in the directory below /run that a user
// has: "docker.sock" and "docker/", "containerd-rootless/".
constexpr std::array<std::string_view, 7> kControlSockets = {
    "bus", "buildkit", "containerd", "docker", "libvirt", "podman", "systemd"};

// Filesystems whose files are the kernel's own state.
constexpr std::array<std::string_view, 17> kKernelFilesystems = {
    "proc",     "sysfs",  "cgroup",  "cgroup2",  "devpts",     "debugfs",
    "tracefs",  "bpf",    "nsfs",    "devtmpfs", "configfs",   "securityfs",
    "efivarfs", "pstore", "fusectl", "mqueue",   "binfmt_misc"};

std::unexpected<Error> forbid(const std::string& source, const std::string& why) {
  return invalid_argument(source + " is not possible: " + why);
}

// The identities of an open file and of every directory above it.
std::vector<FileIdentity> chain_of(int fd, const std::string& path) {
  std::vector<FileIdentity> chain;
  const auto self = identity_of(fd);
  if (!self) return chain;
  chain.push_back(*self);
  struct stat status{};
  UniqueFd above;
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    above = UniqueFd(::openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  } else {
    const auto parent = std::filesystem::path(path).parent_path();
    above = open_beneath(AT_FDCWD, parent.c_str(), O_PATH | O_DIRECTORY,
                         RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
  }
  while (above) {
    const auto identity = identity_of(above.get());
    if (!identity || *identity == chain.back()) break;  // ".." of the root is the root
    chain.push_back(*identity);
    above = UniqueFd(::openat(above.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return chain;
}

// The mount that an open file lies on, also if another one lies over it.
const MountPoint* mount_of(int fd, const std::vector<MountPoint>& mounts) {
  struct statx status{};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_MNT_ID, &status) != 0 ||
      (status.stx_mask & STATX_MNT_ID) == 0) {
    return nullptr;
  }
  const auto found = std::ranges::find(mounts, status.stx_mnt_id, &MountPoint::id);
  return found == mounts.end() ? nullptr : &*found;
}

std::optional<FileLocation> location_of(int fd, const std::string& path,
                                        const std::vector<MountPoint>& mounts) {
  const MountPoint* const mount = mount_of(fd, mounts);
  if (mount == nullptr) return std::nullopt;
  return location_on(*mount, path);
}

bool is_of_kernel(const MountPoint& mount) {
  return std::ranges::find(kKernelFilesystems, mount.filesystem) != kKernelFilesystems.end();
}

// One forbidden file, as it is now.
struct Place {
  std::string name;  // for people
  std::vector<FileIdentity> chain;
  std::optional<FileLocation> location;
};

std::optional<Place> place_of(const std::filesystem::path& path, int held,
                              const std::vector<MountPoint>& mounts) {
  UniqueFd opened;
  if (held < 0) {
    opened = UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!opened) return std::nullopt;
    held = opened.get();
  }
  const auto now = path_of(held);
  if (!now) return std::nullopt;
  return Place{.name = path.string(),
               .chain = chain_of(held, *now),
               .location = location_of(held, *now, mounts)};
}

// What a source, or a mount below one, has to do with a forbidden file; empty if nothing.
std::string relation(const std::vector<FileIdentity>& chain,
                     const std::optional<FileLocation>& location, const Place& forbidden) {
  if (chain.empty() || forbidden.chain.empty()) return "";
  const auto has = [](const std::vector<FileIdentity>& all, const FileIdentity& one) {
    return std::ranges::find(all, one) != all.end();
  };
  if (chain.front() == forbidden.chain.front()) return "is";
  const bool has_locations = location && forbidden.location;
  if (has(chain, forbidden.chain.front()) ||
      (has_locations && is_within(*location, *forbidden.location))) {
    return "is inside";
  }
  if (has(forbidden.chain, chain.front()) ||
      (has_locations && is_within(*forbidden.location, *location))) {
    return "contains";
  }
  return "";
}

std::vector<std::filesystem::path> control_sockets(const std::filesystem::path& runtime) {
  std::vector<std::filesystem::path> found;
  std::error_code problem;  // a directory that cannot be read is not the user's
  for (std::filesystem::directory_iterator entry(runtime, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const std::string name = entry->path().filename().string();
    const bool controls = std::ranges::any_of(
        kControlSockets, [&name](std::string_view start) { return name.starts_with(start); });
    if (controls) found.push_back(entry->path());
  }
  return found;
}

}  // namespace

ForbiddenSources::ForbiddenSources(const std::vector<std::filesystem::path>& paths,
                                   std::filesystem::path run)
    : run_(std::move(run)) {
  const auto add = [&](const std::filesystem::path& path) {
    forbidden_.push_back({path, UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC))});
  };
  for (const std::filesystem::path& path : paths) add(path);
  add(run_);
  for (const std::string_view path : kForbiddenDirectories) add(path);
}

Result<> ForbiddenSources::check(int source, const std::string& path,
                                 const std::vector<std::filesystem::path>& more) const {
  return check_except(source, path, more, {});
}

Result<> ForbiddenSources::check_socket(int source, const std::string& path,
                                        const std::vector<std::filesystem::path>& more,
                                        uid_t user) const {
  const std::filesystem::path runtime = run_ / "user" / std::to_string(user);
  std::vector<std::filesystem::path> forbidden = control_sockets(runtime);
  forbidden.insert(forbidden.end(), more.begin(), more.end());
  std::vector<std::filesystem::path> permitted;
  const UniqueFd directory(::open(runtime.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (const auto own = directory ? identity_of(directory.get()) : std::nullopt) {
    const auto chain = chain_of(source, path);
    if (std::ranges::find(chain, *own) != chain.end()) permitted = {run_, kOldRun};
  }
  return check_except(source, path, forbidden, permitted);
}

Result<> ForbiddenSources::check_except(int source, const std::string& path,
                                        const std::vector<std::filesystem::path>& more,
                                        const std::vector<std::filesystem::path>& permitted) const {
  if (path == "/") return forbid(path, "it is the root directory of this host");
  const auto text = read_text_file("/proc/self/mountinfo");
  if (!text) return forbid(path, "/proc/self/mountinfo, which lists the mounts, cannot be read");
  const std::vector<MountPoint> mounts = parse_mountinfo(*text);
  const MountPoint* const mount = mount_of(source, mounts);
  if (mount == nullptr) return forbid(path, "its mount is not known");
  if (is_of_kernel(*mount)) {
    return forbid(path, "it is on a " + mount->filesystem + " filesystem of the kernel");
  }
  std::vector<Place> forbidden;
  const auto add = [&](const std::filesystem::path& name, int fd) {
    if (auto found = place_of(name, fd, mounts)) forbidden.push_back(std::move(*found));
  };
  for (const Forbidden& one : forbidden_) {
    if (std::ranges::find(permitted, one.path) != permitted.end()) continue;
    if (one.fd) add(one.path, one.fd.get());  // also if it was renamed
    add(one.path, -1);  // also if it was created again: an engine that restarts does that
  }
  for (const std::filesystem::path& one : more) add(one, -1);
  const auto chain = chain_of(source, path);
  const FileLocation location = location_on(*mount, path);
  for (const Place& one : forbidden) {
    const std::string how = relation(chain, location, one);
    if (!how.empty()) {
      return forbid(path, "it " + how + " " + one.name + ", which no sandbox may see");
    }
  }
  for (const MountPoint& below : mounts) {
    if (below.directory == path || !is_path_within(below.directory, path)) continue;
    const std::string what = below.directory + ", which is mounted below it, ";
    if (is_of_kernel(below)) {
      return forbid(path, what + "is a " + below.filesystem + " filesystem of the kernel");
    }
    const FileLocation root{.device = below.device, .path = below.root};
    for (const Place& one : forbidden) {
      if (!one.location) continue;
      if (is_within(root, *one.location) || is_within(*one.location, root)) {
        return forbid(path, what + "leads to " + one.name + ", which no sandbox may see");
      }
    }
  }
  // Of a directory, that means that it cannot be read: no mount or copy of it is possible.
  struct stat status{};
  if (chain.size() < 2 && (::fstat(source, &status) != 0 || !S_ISDIR(status.st_mode))) {
    return forbid(path, "the directory that it is in is not known");
  }
  return {};
}

}  // namespace agbox
