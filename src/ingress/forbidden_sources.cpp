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

#include "base/path_within.h"
#include "base/text_file.h"
#include "ingress/file_identity.h"
#include "model/spec/mount_point.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

constexpr std::array<std::string_view, 9> kForbiddenDirectories = {"/proc",
                                                                   "/sys",
                                                                   "/dev",
                                                                   "/run",
                                                                   "/boot",
                                                                   "/var/lib/docker",
                                                                   "/var/lib/containerd",
                                                                   "/var/lib/containers",
                                                                   "/var/run"};

// Of these, the ones that have the sockets of users.
constexpr std::array<std::string_view, 2> kSocketDirectories = {"/run", "/var/run"};

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
    above = UniqueFd(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
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

}  // namespace

ForbiddenSources::ForbiddenSources(const std::vector<std::filesystem::path>& paths) {
  const auto add = [&](const std::filesystem::path& path) {
    forbidden_.push_back({path, UniqueFd(::open(path.c_str(), O_PATH | O_CLOEXEC))});
  };
  for (const std::filesystem::path& path : paths) add(path);
  for (const std::string_view path : kForbiddenDirectories) add(path);
}

Result<> ForbiddenSources::check(int source, const std::string& path,
                                 const std::vector<std::filesystem::path>& more, Kind kind) const {
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
    const bool has_sockets =
        std::ranges::find(kSocketDirectories, one.path.string()) != kSocketDirectories.end();
    if (kind == Kind::Socket && has_sockets) continue;
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
  return {};
}

}  // namespace agbox
