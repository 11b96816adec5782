// SPDX-License-Identifier: Apache-2.0
#include "guest/kept_accounts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/image_file.h"
#include "guest/privilege.h"

namespace agbox::guest {
namespace {

constexpr const char* kDirectory = "/etc";

// A directory is no danger: the engine refuses it at once.
bool must_go(int directory, const char* name) {
  struct stat status{};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  return !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// As the directory's owner: we have no capability that overrides permissions. A failure is left to
// the daemon, which checks the files before each start.
void put_back(int root, int directory, const char* name, const std::string& text) {
  struct stat status{};
  if (!must_go(directory, name) || ::fstat(directory, &status) != 0) return;
  const FileAccessAs owner(status.st_uid, status.st_gid);
  const std::string path = "/proc/self/fd/" + std::to_string(directory);
  ::fchmodat(AT_FDCWD, path.c_str(), (status.st_mode & 07777) | S_IRWXU, 0);
  if (::unlinkat(directory, name, 0) != 0) return;
  (void)replace_image_file(root, kDirectory, name, text, 0644);
}

}  // namespace

void put_back(int root, const KeptAccounts& kept) {
  const OpenedFile directory = open_inside(root, kDirectory, O_PATH | O_DIRECTORY);
  if (!directory) return;
  if (kept.group) put_back(root, directory.fd.get(), "group", *kept.group);
  if (kept.passwd) put_back(root, directory.fd.get(), "passwd", *kept.passwd);
}

}  // namespace agbox::guest
