// SPDX-License-Identifier: Apache-2.0
#include "ingress/socket_walk.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <deque>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/shown_path.h"
#include "ingress/stat_failure.h"
#include "model/reasons.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

struct Directory {
  UniqueFd fd;
  FileIdentity identity;
  std::string path;  // without links; empty for the root directory
};

std::unexpected<Error> cannot_walk(const std::string& path, int error_number) {
  const bool is_exhausted = error_number == EMFILE || error_number == ENFILE;
  return fail(is_exhausted ? reason::kResourceExhausted : reason::kInvalidArgument,
              stat_failure(path, error_number));
}

// Sets errno on failure.
std::optional<std::string> target_of(const UniqueFd& link) {
  std::array<char, PATH_MAX> target{};
  const ssize_t size = ::readlinkat(link.get(), "", target.data(), target.size());
  if (size < 0) return std::nullopt;
  return std::string(target.data(), static_cast<std::size_t>(size));
}

Result<> check_owner(const std::string& path, const struct stat& status, uid_t user) {
  if (status.st_uid == 0 || status.st_uid == user) return {};
  return invalid_argument(shown_path(path) + " belongs to uid " + std::to_string(status.st_uid) +
                          ", not to the daemon's user or root");
}

Result<> check_directory(const std::string& path, const struct stat& status) {
  const bool is_shared = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (!is_shared || (status.st_mode & S_ISVTX) != 0) return {};
  return invalid_argument("other users may replace what is in " + shown_path(path) +
                          "; run chmod go-w on it");
}

Result<> check_link(const std::string& path, const std::vector<Directory>& above, int links,
                    const SocketWay& way) {
  if (links >= way.max_links) {
    return invalid_argument(shown_path(path) + " is one symbolic link too many: at most " +
                            std::to_string(way.max_links) + " are followed");
  }
  const bool is_of_sandbox = std::ranges::any_of(above, [&](const Directory& one) {
    return std::ranges::find(way.sandbox_directories, one.identity) !=
           way.sandbox_directories.end();
  });
  if (!is_of_sandbox) return {};
  return invalid_argument(shown_path(path) +
                          " is a symbolic link in a directory of a builtin tool, which sandboxes "
                          "may write to; link the socket from elsewhere");
}

void put_first(const std::string& path, std::deque<std::string>& names) {
  const std::filesystem::path whole(path);
  std::deque<std::string> first;
  for (const auto& name : whole.relative_path()) first.push_back(name.string());
  names.insert(names.begin(), first.begin(), first.end());
}

}  // namespace

Result<WalkedSocket> walk_to_socket(const std::string& path, const SocketWay& way) {
  std::vector<Directory> above;
  above.push_back({.fd = UniqueFd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)),
                   .identity = {},  // no directory of a sandbox
                   .path = ""});
  if (!above.back().fd) return cannot_walk(path, errno);
  std::deque<std::string> names;
  put_first(path, names);
  int links = 0;
  while (!names.empty()) {
    const std::string name = std::move(names.front());
    names.pop_front();
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      if (above.size() > 1) above.pop_back();
      continue;
    }
    const std::string here = above.back().path + "/" + name;
    UniqueFd fd(::openat(above.back().fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0) return cannot_walk(path, errno);
    AGBOX_TRY_VOID(check_owner(here, status, way.user));
    if (S_ISLNK(status.st_mode)) {
      AGBOX_TRY_VOID(check_link(here, above, links, way));
      const auto target = target_of(fd);
      if (!target) return cannot_walk(path, errno);
      if (target->starts_with('/')) above.erase(above.begin() + 1, above.end());
      put_first(*target, names);
      ++links;
      continue;
    }
    if (!S_ISDIR(status.st_mode)) {
      if (!names.empty()) return cannot_walk(path, ENOTDIR);
      return WalkedSocket{.fd = std::move(fd), .path = here};
    }
    AGBOX_TRY_VOID(check_directory(here, status));
    above.push_back({.fd = std::move(fd),
                     .identity = {.device = status.st_dev, .inode = status.st_ino},
                     .path = here});
  }
  return invalid_argument(shown_path(path) + " is a directory");
}

}  // namespace agbox
