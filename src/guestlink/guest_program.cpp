// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "base/uuid.h"
#include "guestlink/sha256.h"

namespace agbox::guestlink {
namespace {

constexpr char kName[] = "agbox-guest";
// A guest has about 2 MB; a file of this size is something else.
constexpr std::size_t kMaxProgram = std::size_t{64} << 20;

Result<std::string> read_program(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto bytes = fd ? read_all(fd.get(), kMaxProgram) : std::unexpected(errno);
  if (bytes) return std::move(*bytes);
  return std::unexpected(errno_error("reading the guest program " + path.string(), bytes.error()));
}

Result<> make_directory(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return std::unexpected(errno_error("making " + path.string(), errno));
  }
  return {};
}

Result<> sync_directory(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return std::unexpected(errno_error("syncing " + path.string(), errno));
  }
  return {};
}

// All users inside a container may execute it, none may change it.
Result<> write_program(const std::filesystem::path& path, std::string_view bytes) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
  const int problem = fd ? write_all(fd.get(), bytes) : errno;
  if (problem == 0 && ::fchmod(fd.get(), 0555) == 0 && ::fsync(fd.get()) == 0) return {};
  return std::unexpected(
      errno_error("writing the guest program " + path.string(), problem == 0 ? errno : problem));
}

// An existing identical copy. Comparing the bytes is as good as two hashes and takes a tenth of the
// time, at every start.
std::optional<GuestProgram> find_copy(const std::filesystem::path& guests, std::string_view bytes) {
  std::error_code problem;
  for (std::filesystem::directory_iterator directory(guests, problem), end;
       !problem && directory != end; directory.increment(problem)) {
    GuestProgram copy{directory->path() / kName, directory->path().filename()};
    std::error_code missing;
    if (std::filesystem::file_size(copy.path, missing) != bytes.size() || missing) continue;
    if (const auto there = read_program(copy.path); there && *there == bytes) return copy;
  }
  return std::nullopt;
}

}  // namespace

Result<std::filesystem::path> find_guest_program(const std::filesystem::path& daemon_program) {
  const auto directory = daemon_program.parent_path();
  const auto installed = directory.parent_path() / "libexec" / "agents-sandbox" / kName;
  const auto next_to_daemon = directory / kName;
  for (const auto& candidate : {installed, next_to_daemon}) {
    if (::access(candidate.c_str(), R_OK | X_OK) == 0) return candidate;
  }
  return fail(reason::kHostNotReady, "the guest program is neither at " + installed.string() +
                                         " nor at " + next_to_daemon.string() +
                                         ": install agents-sandbox as a whole");
}

Result<GuestProgram> install_guest_program(const std::filesystem::path& source,
                                           const std::filesystem::path& state_root) {
  AGBOX_TRY(bytes, read_program(source));
  const auto guests = state_root / "guests";
  if (auto copy = find_copy(guests, bytes)) return std::move(*copy);
  const std::string hash = sha256_of(bytes);
  const auto directory = guests / hash;
  GuestProgram program{directory / kName, hash};
  AGBOX_TRY_VOID(make_directory(guests));
  AGBOX_TRY_VOID(make_directory(directory));
  const auto draft = directory / (std::string(kName) + "." + random_uuid());
  Result<> made = write_program(draft, bytes);
  if (made && ::rename(draft.c_str(), program.path.c_str()) != 0) {
    made =
        std::unexpected(errno_error("placing the guest program " + program.path.string(), errno));
  }
  if (!made) ::unlink(draft.c_str());
  AGBOX_TRY_VOID(made);
  AGBOX_TRY_VOID(sync_directory(directory));
  AGBOX_TRY_VOID(sync_directory(guests));
  return program;
}

}  // namespace agbox::guestlink
