// SPDX-License-Identifier: Apache-2.0
#include "guest/image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/file_io.h"
#include "base/open_beneath.h"

namespace agbox::guest {
namespace {

constexpr std::size_t kMaxFile = std::size_t{4} << 20;

OpenedFile open_below(int root, std::string_view path, int flags, std::uint64_t resolve) {
  while (path.starts_with('/')) path.remove_prefix(1);
  const std::string relative = path.empty() ? "." : std::string(path);
  UniqueFd fd = open_beneath(root, relative.c_str(), flags, resolve);
  const int problem = fd ? 0 : errno;
  return {std::move(fd), problem};
}

}  // namespace

OpenedFile open_inside(int root, std::string_view path, int flags) {
  return open_below(root, path, flags, kBeneath | RESOLVE_NO_XDEV);
}

OpenedFile open_across_mounts(int root, std::string_view path, int flags) {
  return open_below(root, path, flags, kBeneath);
}

OpenedFile open_as_mounted(int root, std::string_view path, int flags) {
  return open_below(root, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

OpenedFile open_outside_mounts(int root, std::string_view path, int flags) {
  return open_below(root, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV);
}

Result<std::optional<std::string>> read_image_file(int root, std::string_view path) {
  // Non-blocking: the image may have a FIFO there.
  const OpenedFile file = open_inside(root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file && file.problem == ENOENT) return std::nullopt;
  if (!file) return std::unexpected(errno_error("opening " + std::string(path), file.problem));
  struct stat status{};
  if (::fstat(file.fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(reason::kInvalidArgument, std::string(path) + " is not a regular file");
  }
  auto text = read_all(file.fd.get(), kMaxFile);
  if (text) return std::move(*text);
  return std::unexpected(errno_error("reading " + std::string(path), text.error()));
}

Result<> replace_image_file(int root, std::string_view directory_path, std::string_view name,
                            std::string_view text, mode_t mode) {
  const std::string path = std::string(directory_path) + "/" + std::string(name);
  const auto problem = [&](std::string_view step, int number) {
    return std::unexpected(errno_error(std::string(step) + " " + path, number));
  };
  const OpenedFile directory = open_inside(root, directory_path, O_PATH | O_DIRECTORY);
  if (!directory) return problem("opening the directory of", directory.problem);
  const int at = directory.fd.get();

  uid_t uid = ::geteuid();
  gid_t gid = ::getegid();
  const OpenedFile old = open_inside(root, path, O_PATH | O_NOFOLLOW);
  if (!old && old.problem != ENOENT) return problem("inspecting", old.problem);
  if (old) {
    struct stat status{};
    if (::fstat(old.fd.get(), &status) != 0) return problem("inspecting", errno);
    if (!S_ISREG(status.st_mode)) return problem("replacing", EINVAL);
    uid = status.st_uid;
    gid = status.st_gid;
    mode = status.st_mode & 07777;
  }

  const std::string target(name);
  const std::string draft = ".agbox-" + target;
  ::unlinkat(at, draft.c_str(), 0);  // left by an interrupted start
  const UniqueFd fd(
      ::openat(at, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return problem("writing", errno);
  Result<> written;
  if (const int number = write_all(fd.get(), text)) written = problem("writing", number);
  if (written && old && ::fchown(fd.get(), uid, gid) != 0)
    written = problem("keeping the owner of", errno);
  if (written && ::fchmod(fd.get(), mode) != 0) written = problem("keeping the mode of", errno);
  if (written && ::renameat(at, draft.c_str(), at, target.c_str()) != 0) {
    written = problem("replacing", errno);
  }
  if (!written) ::unlinkat(at, draft.c_str(), 0);
  return written;
}

}  // namespace agbox::guest
