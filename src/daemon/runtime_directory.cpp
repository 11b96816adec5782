// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace agbox {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOnlyUs = 0700;

Result<> make_directories(const fs::path& path) {
  if (path.empty() || ::mkdir(path.c_str(), kOnlyUs) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return std::unexpected(errno_error("create " + path.string(), errno));
  AGBOX_TRY_VOID(make_directories(path.parent_path()));
  if (::mkdir(path.c_str(), kOnlyUs) == 0 || errno == EEXIST) return {};
  return std::unexpected(errno_error("create " + path.string(), errno));
}

}  // namespace

Result<RuntimeDirectory> RuntimeDirectory::open(const fs::path& path, const Logger& log) {
  const auto refuse = [&](const std::string& why) {
    return fail(reason::kHostNotReady, "open runtime directory " + path.string() + ": " + why);
  };
  if (const auto made = make_directories(path); !made) return refuse(made.error().message());
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // ENOTDIR for a symbolic link on Linux, ELOOP elsewhere.
  if (!fd && (errno == ENOTDIR || errno == ELOOP)) {
    return refuse("it is a symbolic link or not a directory; remove it, agboxd creates its own");
  }
  if (!fd) return refuse(std::generic_category().message(errno));
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return refuse(std::generic_category().message(errno));
  if (found.st_uid != ::geteuid()) {
    return refuse("it belongs to user " + std::to_string(found.st_uid) + ", not to user " +
                  std::to_string(::geteuid()) +
                  ", who runs agboxd; set XDG_RUNTIME_DIR to a directory of your own");
  }
  if ((found.st_mode & 07777) != kOnlyUs) {
    if (::fchmod(fd.get(), kOnlyUs) != 0) {
      return refuse("set its mode to 0700: " + std::generic_category().message(errno));
    }
    log.warn("runtime directory was accessible to others, mode set to 0700",
             {{"path", path.string()}, {"mode", found.st_mode & 07777}});
  }
  return RuntimeDirectory(path, std::move(fd));
}

}  // namespace agbox
