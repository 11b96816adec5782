// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime_folder.h"

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

Result<> make_folders(const fs::path& path) {
  if (path.empty() || ::mkdir(path.c_str(), kOnlyUs) == 0 || errno == EEXIST) return {};
  if (errno != ENOENT) return std::unexpected(errno_error("create " + path.string(), errno));
  AGBOX_TRY_VOID(make_folders(path.parent_path()));
  if (::mkdir(path.c_str(), kOnlyUs) == 0 || errno == EEXIST) return {};
  return std::unexpected(errno_error("create " + path.string(), errno));
}

}  // namespace

Result<RuntimeFolder> RuntimeFolder::open(const fs::path& path, const Logger& log) {
  const auto refuse = [&](const std::string& why) {
    return fail(reason::kHostNotReady, "open runtime folder " + path.string() + ": " + why);
  };
  if (const auto made = make_folders(path); !made) return refuse(made.error().message());
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // Linux says ENOTDIR for a symbolic link here, others ELOOP.
  if (!fd && (errno == ENOTDIR || errno == ELOOP)) {
    return refuse("it is a symbolic link or no folder; remove it, agboxd makes its own");
  }
  if (!fd) return refuse(std::generic_category().message(errno));
  struct stat found{};
  if (::fstat(fd.get(), &found) != 0) return refuse(std::generic_category().message(errno));
  if (found.st_uid != ::geteuid()) {
    return refuse("it belongs to user " + std::to_string(found.st_uid) + ", not to user " +
                  std::to_string(::geteuid()) +
                  ", who runs agboxd; set XDG_RUNTIME_DIR to a folder of your own");
  }
  if ((found.st_mode & 07777) != kOnlyUs) {
    if (::fchmod(fd.get(), kOnlyUs) != 0) {
      return refuse("set its mode to 0700: " + std::generic_category().message(errno));
    }
    log.warn("runtime folder was open to others; set its mode to 0700",
             {{"path", path.string()}, {"mode", found.st_mode & 07777}});
  }
  return RuntimeFolder(path, std::move(fd));
}

}  // namespace agbox
