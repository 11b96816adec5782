// SPDX-License-Identifier: Apache-2.0
#include "guestlink/link_directory.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "guestlink/sha256.h"
#include "guestwire/place.h"

namespace agbox::guestlink {
namespace {

std::string hash_of(std::string_view sandbox_id) {
  return sha256_of(sandbox_id).substr(0, 16);
}

bool is_hash(std::string_view name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<> make_private_directory(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(errno_error("making " + path.string(), errno));
  }
  return {};
}

// Permanently, or something else has its name. If the root does not exist either, it may be on a
// disk that is mounted later.
bool is_gone(const std::filesystem::path& root, const std::filesystem::path& path) {
  using enum std::filesystem::file_type;
  std::error_code problem;
  if (!std::filesystem::is_directory(root, problem)) return false;
  const auto type = std::filesystem::symlink_status(path, problem).type();
  return type != directory && type != none;  // none: unknown
}

}  // namespace

std::filesystem::path LinkDirectory::path_of(const std::filesystem::path& root,
                                             std::string_view sandbox_id,
                                             std::string_view companion) {
  const std::filesystem::path path = root / hash_of(sandbox_id);
  return companion.empty() ? path : companions_of(path) / hash_of(companion);
}

std::filesystem::path LinkDirectory::companions_of(const std::filesystem::path& path) {
  return path.string() + ".companions";
}

Result<LinkDirectory> LinkDirectory::open(const std::filesystem::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    return std::unexpected(errno_error("opening the guest's directory " + path.string(), errno));
  }
  if (status.st_uid != ::geteuid() || (status.st_mode & 077) != 0) {
    return fail(reason::kHostNotReady, "the guest's directory " + path.string() +
                                           " must belong to the daemon's user alone (mode 0700)");
  }
  return LinkDirectory(path, std::move(fd), DirectoryIdentity{status.st_dev, status.st_ino});
}

Result<LinkDirectory> LinkDirectory::make(const std::filesystem::path& root,
                                          std::string_view sandbox_id, std::string_view companion) {
  const auto path = path_of(root, sandbox_id, companion);
  AGBOX_TRY_VOID(make_private_directory(root.parent_path()));  // shared by all instances
  AGBOX_TRY_VOID(make_private_directory(root));
  if (!companion.empty()) AGBOX_TRY_VOID(make_private_directory(path.parent_path()));
  AGBOX_TRY_VOID(make_private_directory(path));
  return open(path);
}

GuestResult<LinkDirectory> LinkDirectory::adopt(const std::filesystem::path& root,
                                                std::string_view sandbox_id,
                                                DirectoryIdentity expected,
                                                std::string_view companion) {
  const auto path = path_of(root, sandbox_id, companion);
  auto directory = open(path);
  if (directory && directory->identity() == expected) return std::move(*directory);
  const std::string whose = "the directory of the guest of sandbox " + std::string(sandbox_id);
  constexpr const char* kRemedy = ": delete the sandbox and create it again";
  if (directory) {
    return guest_fail(GuestErrorKind::Refused,
                      whose + " is not the one that its container has mounted" + kRemedy);
  }
  if (is_gone(root, path)) return guest_fail(GuestErrorKind::Refused, whose + " is gone" + kRemedy);
  return guest_fail(GuestErrorKind::Unavailable,
                    whose + " cannot be used now (" + directory.error().message() + ")");
}

Result<std::vector<std::filesystem::path>> LinkDirectory::list(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> found;
  std::error_code problem;
  for (std::filesystem::directory_iterator entry(root, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    const bool is_directory =
        entry->symlink_status(problem).type() == std::filesystem::file_type::directory;
    if (is_directory && is_hash(entry->path().filename().string())) found.push_back(entry->path());
  }
  if (problem && problem != std::errc::no_such_file_or_directory) {
    return fail(reason::kHostNotReady, "reading " + root.string() + ": " + problem.message());
  }
  return found;
}

// Next to the directory: nothing in the container can connect to it before it listens.
std::filesystem::path LinkDirectory::draft_of(const std::filesystem::path& path) {
  return path.string() + ".new";
}

// The directory last: it is what list() finds if this is interrupted.
Result<> LinkDirectory::remove(const std::filesystem::path& path) {
  std::error_code problem;
  std::filesystem::remove(draft_of(path), problem);
  if (!problem) std::filesystem::remove_all(companions_of(path), problem);
  if (!problem) std::filesystem::remove_all(path, problem);
  if (!problem) return {};
  return fail(reason::kHostNotReady,
              "removing the guest's directory " + path.string() + ": " + problem.message());
}

GuestResult<UniqueFd> LinkDirectory::listen() const {
  const auto problem = [&](std::string_view step) {
    const int number = errno;
    stop_listening();
    return guest_fail(GuestErrorKind::Unavailable,
                      errno_error(std::string(step) + " in " + path_.string(), number).message());
  };
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::filesystem::path draft = draft_of(path_);
  const UniqueFd root(
      ::open(path_.parent_path().c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || !root) return problem("making the guest's socket");
  stop_listening();  // removes the socket of a killed daemon
  const std::string name = draft.filename();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the descriptor: this path is short, however long root is.
  const std::string path = "/proc/self/fd/" + std::to_string(root.get()) + "/" + name;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  // sockaddr is the generic address type of the C API.
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return problem("binding the guest's socket");
  }
  if (::fchmodat(root.get(), name.c_str(), 0600, 0) != 0) {
    return problem("closing the guest's socket");
  }
  if (::listen(fd.get(), kQueueLength) != 0) return problem("listening for the guest");
  if (::renameat(root.get(), name.c_str(), fd_.get(), guestwire::kSocketName) != 0) {
    return problem("showing the guest's socket");
  }
  return fd;
}

void LinkDirectory::stop_listening() const {
  ::unlink(draft_of(path_).c_str());
  ::unlinkat(fd_.get(), guestwire::kSocketName, 0);
}

}  // namespace agbox::guestlink
