// SPDX-License-Identifier: Apache-2.0
#include "store/durable_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>

#include "base/file_io.h"
#include "base/unique_fd.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

Result<> copy_bytes(int from, int to, const fs::path& target) {
  std::array<char, 1 << 16> buffer{};
  for (off_t offset = 0;;) {
    const ssize_t length = ::pread(from, buffer.data(), buffer.size(), offset);
    if (length == 0) return {};
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return std::unexpected(errno_error("copy to " + target.string(), errno));
    offset += length;
    if (const int problem = write_all(to, {buffer.data(), static_cast<std::size_t>(length)})) {
      return std::unexpected(errno_error("write " + target.string(), problem));
    }
  }
}

Result<> copy_and_sync(int from, const fs::path& to) {
  const UniqueFd target(
      ::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!target) return std::unexpected(errno_error("create " + to.string(), errno));
  AGBOX_TRY_VOID(copy_bytes(from, target.get(), to));
  if (::fsync(target.get()) != 0) return std::unexpected(errno_error("sync " + to.string(), errno));
  return {};
}

}  // namespace

Result<> sync_directory(const fs::path& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return std::unexpected(errno_error("sync directory " + directory.string(), errno));
  }
  return {};
}

Result<> copy_durably(int from, const fs::path& to) {
  const fs::path unfinished = to.string() + ".new";
  if (auto copied = copy_and_sync(from, unfinished); !copied) {
    ::unlink(unfinished.c_str());
    return copied;
  }
  if (::rename(unfinished.c_str(), to.c_str()) != 0) {
    const Error error = errno_error("rename to " + to.string(), errno);
    ::unlink(unfinished.c_str());
    return std::unexpected(error);
  }
  return sync_directory(to.parent_path());
}

Result<> make_private_directories(const fs::path& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0) return sync_directory(directory.parent_path());
  if (errno == EEXIST) {
    struct stat found{};
    if (::stat(directory.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) return {};
    return fail(reason::kHostNotReady,
                "create directory " + directory.string() + ": exists and is not a directory");
  }
  if (errno != ENOENT || !directory.has_relative_path()) {
    return std::unexpected(errno_error("create directory " + directory.string(), errno));
  }
  AGBOX_TRY_VOID(make_private_directories(directory.parent_path()));
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(errno_error("create directory " + directory.string(), errno));
  }
  return sync_directory(directory.parent_path());
}

}  // namespace agbox
