// SPDX-License-Identifier: Apache-2.0
// Files of a sandbox. Bytes in memory are copied through a file in a directory of their own, so
// that they meet the same checks as any other copy.
#include <agbox/file_copy.h>
#include <agbox/sandbox.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "client_core.h"

namespace agbox::sdk {

namespace {

Error local_error(const std::string& what, int error_number) {
  return {.kind = ErrorKind::LocalFile,
          .code = StatusCode::FailedPrecondition,
          .message = what + ": " + std::generic_category().message(error_number)};
}

// Readable by this user alone; removed at the end.
class PrivateDirectory {
 public:
  static Result<PrivateDirectory> make() {
    std::error_code problem;
    std::string path = (std::filesystem::temp_directory_path(problem) / "agbox-XXXXXX").string();
    if (problem) return std::unexpected(local_error("find TMPDIR", problem.value()));
    if (::mkdtemp(path.data()) == nullptr)
      return std::unexpected(local_error("create " + path, errno));
    return PrivateDirectory(path);
  }
  PrivateDirectory(PrivateDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  PrivateDirectory& operator=(PrivateDirectory&&) = delete;
  ~PrivateDirectory() {
    std::error_code ignored;  // it is below TMPDIR, which others clean up
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const std::string& name) const { return path_ / name; }

 private:
  explicit PrivateDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace

Result<FileCopyResult> Sandbox::copy_in(const std::filesystem::path& source,
                                        const std::string& target,
                                        const FileCopyOptions& options) const {
  return sdk::copy_in(client_->raw(), source, id_, target, options);
}

Result<FileCopyResult> Sandbox::copy_out(const std::string& source,
                                         const std::filesystem::path& target,
                                         const FileCopyOptions& options) const {
  return sdk::copy_out(client_->raw(), id_, source, target, options);
}

Result<void> Sandbox::write_file(const std::string& path, std::string_view bytes,
                                 const std::stop_token& stop) const {
  const std::string name = std::filesystem::path(path).filename();
  if (name.empty() || name == "." || name == "..") {
    return std::unexpected(Error{.kind = ErrorKind::Refused,
                                 .code = StatusCode::InvalidArgument,
                                 .message = "path \"" + path + "\" does not name a file"});
  }
  const auto directory = PrivateDirectory::make();
  if (!directory) return std::unexpected(directory.error());
  const std::string file = directory->file(name);
  const UniqueFd descriptor(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!descriptor) return std::unexpected(local_error("create " + file, errno));
  if (const int problem = write_all(descriptor.get(), bytes)) {
    return std::unexpected(local_error("write " + file, problem));
  }
  const auto copied = copy_in(file, path, {.stop = stop});
  if (!copied) return std::unexpected(copied.error());
  return {};
}

Result<std::string> Sandbox::read_file(const std::string& path, std::uint64_t max_bytes,
                                       const std::stop_token& stop) const {
  const auto directory = PrivateDirectory::make();
  if (!directory) return std::unexpected(directory.error());
  const std::string file = directory->file("file");
  const auto copied =
      copy_out(path, file, {.max_entries = 1, .max_bytes = max_bytes, .stop = stop});
  if (!copied) return std::unexpected(copied.error());
  // It may have become a link or a directory.
  const UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found{};
  if (!descriptor || ::fstat(descriptor.get(), &found) != 0 || !S_ISREG(found.st_mode)) {
    return std::unexpected(Error{.kind = ErrorKind::LocalFile,
                                 .code = StatusCode::FailedPrecondition,
                                 .message = path + " of sandbox " + id_ + " is not a file",
                                 .metadata = {{"sandbox_id", id_}}});
  }
  // A sparse file can be longer than what was copied.
  auto bytes = read_all(descriptor.get(), max_bytes);
  if (!bytes) return std::unexpected(local_error("read " + path + " of " + id_, bytes.error()));
  return std::move(*bytes);
}

}  // namespace agbox::sdk
