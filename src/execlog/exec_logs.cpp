// SPDX-License-Identifier: Apache-2.0
#include "execlog/exec_logs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>
#include <vector>

#include "async/cancellation.h"
#include "async/run_blocking.h"
#include "base/failpoint.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "model/ids.h"
#include "model/reasons.h"

namespace agbox {
namespace {

constexpr std::string_view kStdoutSuffix = ".stdout.log";
constexpr std::string_view kStderrSuffix = ".stderr.log";
constexpr std::size_t kRemovedAtOnce = 64;
constexpr mode_t kOnlyUs = 0700;
constexpr int kAppending = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY;
// For existing files: neither a FIFO nor a lease, which the sandbox may take on its own logs, may
// block the thread of all execs.
constexpr int kReopening = kAppending | O_NONBLOCK;
constexpr int kReopeningToRead = (kReopening & ~O_ACCMODE) | O_RDWR;

// Existing clients know the prefix. A full disk or no free descriptor is not a wrong configuration.
Error problem_with(const std::string& path, int error_number) {
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT || error_number == EMFILE ||
                       error_number == ENFILE;
  return {is_full ? reason::kResourceExhausted : reason::kExecOutputUnavailable,
          "prepare exec artifact output: " + path + ": " +
              std::generic_category().message(error_number)};
}

// Creates the parent directories of the file. Needed only for a template with more of them than the
// sandbox's own, or if another process removed a directory.
void make_parents(int root, const std::string& relative) {
  UniqueFd directory(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  for (std::size_t begin = 0; directory;) {
    const std::size_t end = relative.find('/', begin);
    if (end == std::string::npos) return;
    const std::string name = relative.substr(begin, end - begin);
    if (::mkdirat(directory.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return;
    directory = open_beneath(directory.get(), name.c_str(), O_PATH | O_DIRECTORY);
    begin = end + 1;
  }
}

// The directory of a file, and the file's name in it.
struct Place {
  UniqueFd directory;
  std::string name;
};

Place place_below(int root, const std::string& relative) {
  const std::size_t slash = relative.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : relative.substr(0, slash);
  constexpr int flags = O_PATH | O_DIRECTORY;
  Place place{.directory = open_beneath(root, parent.c_str(), flags),
              .name = relative.substr(slash + 1)};
  if (!place.directory && errno == ENOENT) {
    make_parents(root, relative);
    place.directory = open_beneath(root, parent.c_str(), flags);
  }
  return place;
}

UniqueFd open_log(const Place& place, std::string_view suffix, int flags) {
  const std::string name = place.name + std::string(suffix);
  return UniqueFd(::openat(place.directory.get(), name.c_str(), flags, 0600));
}

UniqueFd make_log(const Place& place, std::string_view suffix, SpareFiles* spares) {
  if (spares != nullptr) {
    if (UniqueFd taken = spares->take(place.directory.get(), place.name + std::string(suffix))) {
      return taken;
    }
  }
  return open_log(place, suffix, kAppending | O_EXCL);
}

// A descriptor of the root, and its path with all symbolic links resolved.
struct Root {
  UniqueFd fd;
  std::string path;
};

Result<Root> open_root(const std::string& configured) {
  Root root{.fd = UniqueFd(::open(configured.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
            .path = {}};
  if (!root.fd) return std::unexpected(problem_with(configured, errno));
  std::array<char, PATH_MAX> path;
  const std::string link = "/proc/self/fd/" + std::to_string(root.fd.get());
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  if (length < 0) return std::unexpected(problem_with(configured, errno));
  root.path.assign(path.data(), static_cast<std::size_t>(length));
  return root;
}

Result<DiskSpace> space_of(const Root& root) {
  struct statvfs disk{};
  if (::fstatvfs(root.fd.get(), &disk) != 0) return std::unexpected(problem_with(root.path, errno));
  return disk_space(disk);
}

// Refuses to write to anything but a log of ours.
Result<> take_over(const UniqueFd& file, const std::string& path) {
  struct stat found{};
  if (!file && errno == EAGAIN) {
    return fail(reason::kExecOutputBusy,
                "prepare exec artifact output: a process holds a lease on " + path +
                    " (F_SETLEASE), probably in the sandbox; end that process");
  }
  if (!file || ::fstat(file.get(), &found) != 0) return std::unexpected(problem_with(path, errno));
  if (!S_ISREG(found.st_mode) || found.st_nlink != 1) {
    return fail(reason::kExecOutputUnavailable, "prepare exec artifact output: " + path +
                                                    " is not a file of its own; move it away");
  }
  // Writers block as on any other file.
  if (::fcntl(file.get(), F_SETFL, O_APPEND) != 0) {
    return std::unexpected(problem_with(path, errno));
  }
  return {};
}

Result<> take_over_empty(const UniqueFd& file, const std::string& path) {
  AGBOX_TRY_VOID(take_over(file, path));
  if (::ftruncate(file.get(), 0) != 0) return std::unexpected(problem_with(path, errno));
  return {};
}

// Whether it is the last one of the file.
bool has_last_line(const UniqueFd& file, const std::string& line) {
  struct stat found{};
  if (::fstat(file.get(), &found) != 0 || std::cmp_less(found.st_size, line.size())) return false;
  const bool is_first = std::cmp_equal(found.st_size, line.size());
  const std::string expected = is_first ? line : "\n" + line;
  std::string end(expected.size(), '\0');
  const off_t offset = found.st_size - static_cast<off_t>(end.size());
  const ssize_t got = ::pread(file.get(), end.data(), end.size(), offset);
  return std::cmp_equal(got, end.size()) && end == expected;
}

// Collects the first few entries of a directory, contents before their directory. A directory that
// does not exist has none.
std::error_code find_few(const std::filesystem::path& directory,
                         std::vector<std::filesystem::path>& few) {
  namespace fs = std::filesystem;
  std::error_code problem;
  fs::directory_iterator entry(directory, problem);
  if (problem == std::errc::no_such_file_or_directory) return {};
  while (!problem && entry != fs::directory_iterator() && few.size() < kRemovedAtOnce) {
    if (!entry->is_symlink(problem) && entry->is_directory(problem)) {
      problem = find_few(entry->path(), few);
    }
    if (problem) break;
    if (few.size() < kRemovedAtOnce) few.push_back(entry->path());
    entry.increment(problem);
  }
  return problem;
}

// Whether the directory itself was removed as well.
Result<bool> remove_few(const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  std::vector<fs::path> few;
  std::error_code problem = find_few(directory, few);
  for (const fs::path& path : few) {
    if (!problem) fs::remove(path, problem);
  }
  if (few.empty() && !problem) fs::remove(directory, problem);
  if (!problem) return few.empty();
  return fail(reason::kHostNotReady, "remove " + directory.string() + ": " + problem.message());
}

// The path relative to the root, without the suffix.
std::string below(const std::string& root, const std::string& path, std::string_view suffix) {
  if (!path.starts_with(root + "/") || !path.ends_with(suffix)) return {};
  return path.substr(root.size() + 1, path.size() - root.size() - 1 - suffix.size());
}

}  // namespace

Result<std::filesystem::path> make_exec_log_directory(const store::v1::CreatedWith& created_with,
                                                      const std::string& sandbox_id) {
  const std::filesystem::path root(created_with.exec_output_root());
  std::filesystem::path directory = root / sandbox_id;
  std::error_code problem;
  std::filesystem::create_directories(root, problem);
  if (problem) {
    return fail(reason::kHostNotReady, "create exec log directory: " + root.string() + ": " +
                                           problem.message() + "; see artifacts.exec_output_root");
  }
  const auto cannot = [&directory] {
    return std::unexpected(errno_error("create exec log directory: " + directory.string(), errno));
  };
  if (::mkdir(directory.c_str(), kOnlyUs) != 0 && errno != EEXIST) return cannot();
  // Inspect what was opened, even if another file takes its name concurrently.
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && (errno == ENOTDIR || errno == ELOOP)) {
    return fail(reason::kHostNotReady,
                "create exec log directory: something that is not a directory is at " +
                    directory.string() + "; move it away");
  }
  struct stat found{};
  if (!fd || ::fstat(fd.get(), &found) != 0) return cannot();
  if (found.st_uid != ::geteuid()) {
    return fail(reason::kHostNotReady, "create exec log directory: " + directory.string() +
                                           " belongs to user " + std::to_string(found.st_uid) +
                                           ", not to user " + std::to_string(::geteuid()) +
                                           ", who runs agboxd; move it away");
  }
  if ((found.st_mode & 077) != 0 && ::fchmod(fd.get(), kOnlyUs) != 0) return cannot();
  return directory;
}

std::string exec_log_name(const std::string& exec_output_template, const std::string& sandbox_id,
                          const std::string& exec_id) {
  std::string name;
  for (std::size_t at = 0; at < exec_output_template.size();) {
    const std::string_view rest = std::string_view(exec_output_template).substr(at);
    constexpr std::string_view sandbox_field = "{sandbox_id}";
    constexpr std::string_view exec_field = "{exec_id}";
    if (rest.starts_with(sandbox_field)) {
      name += sandbox_id;
      at += sandbox_field.size();
    } else if (rest.starts_with(exec_field)) {
      name += exec_id;
      at += exec_field.size();
    } else {
      name += exec_output_template[at++];
    }
  }
  return name;
}

Result<> check_space(const std::string& root, const DiskSpace& space) {
  if (space.left >= space.reserve) return {};
  return fail(reason::kResourceExhausted, "prepare exec artifact output: the filesystem of " +
                                              root + " has " + std::to_string(space.left / kMiB) +
                                              " MiB left, and " +
                                              std::to_string(space.reserve / kMiB) +
                                              " MiB have to stay free; free some space there");
}

Result<ExecLogs> make_exec_logs(const store::v1::CreatedWith& created_with,
                                const std::string& sandbox_id, const std::string& exec_id,
                                SpareFiles& spares) {
  if (AGBOX_FAILPOINT_FAILS("exec.files.before")) {
    return std::unexpected(problem_with("failpoint", EIO));
  }
  AGBOX_TRY(root, open_root(created_with.exec_output_root()));
  AGBOX_TRY(space, space_of(root));
  AGBOX_TRY_VOID(check_space(root.path, space));
  const std::string name = exec_log_name(created_with.exec_output_template(), sandbox_id, exec_id);
  const std::string path = root.path + "/" + name;
  ExecLogs logs{.root = root.path,
                .stdout_path = path + std::string(kStdoutSuffix),
                .stderr_path = path + std::string(kStderrSuffix),
                .are_new = false,
                .out = {},
                .err = {},
                .free_space_reserve = space.reserve};
  const Place place = place_below(root.fd.get(), name);
  if (!place.directory) return std::unexpected(problem_with(path, errno));
  // A sandbox that was created under another configuration keeps its own root.
  SpareFiles* const same_root =
      spares.root() == created_with.exec_output_root() ? &spares : nullptr;
  logs.out = make_log(place, kStdoutSuffix, same_root);
  if (!logs.out && errno != EEXIST) return std::unexpected(problem_with(logs.stdout_path, errno));
  if (logs.out) {
    logs.err = make_log(place, kStderrSuffix, same_root);
    logs.are_new = static_cast<bool>(logs.err);
    if (!logs.err) {
      const int problem = errno;
      ::unlink(logs.stdout_path.c_str());
      logs.out.reset();
      if (problem != EEXIST) return std::unexpected(problem_with(logs.stderr_path, problem));
    }
  }
  AGBOX_FAILPOINT("exec.files.after");
  return logs;
}

void remove_exec_logs(const ExecLogs& logs) {
  if (!logs.are_new) return;
  ::unlink(logs.stdout_path.c_str());
  ::unlink(logs.stderr_path.c_str());
}

Result<std::vector<std::string>> find_exec_log_directories(const std::filesystem::path& root) {
  std::vector<std::string> sandbox_ids;
  std::error_code problem;  // an unreadable root has nothing to remove
  for (std::filesystem::directory_iterator entry(root, problem), end; !problem && entry != end;
       entry.increment(problem)) {
    std::string name = entry->path().filename();
    if (entry->is_directory(problem) && check_id("sandbox_id", name)) {
      sandbox_ids.push_back(std::move(name));
    }
  }
  return sandbox_ids;
}

boost::asio::awaitable<Result<>> remove_exec_log_directory(boost::asio::any_io_executor blocking,
                                                           std::filesystem::path directory) {
  // A few at a time, so that a shutdown of the daemon does not wait for the rest.
  while (!co_await is_cancelled()) {
    AGBOX_CO_TRY(is_gone,
                 co_await run_blocking(blocking, [&directory] { return remove_few(directory); }));
    if (is_gone) co_return Result<>{};
  }
  co_return fail(reason::kCancelled, "cancelled");
}

Result<ExecLogs> reopen_exec_logs(const store::v1::Exec& record) {
  AGBOX_TRY(root, open_root(record.output_root()));
  AGBOX_TRY(space, space_of(root));
  ExecLogs logs{.root = record.output_root(),
                .stdout_path = record.stdout_log_path(),
                .stderr_path = record.stderr_log_path(),
                .are_new = false,
                .out = {},
                .err = {},
                .free_space_reserve = space.reserve};
  const std::string name = below(logs.root, logs.stdout_path, kStdoutSuffix);
  const Place place = place_below(root.fd.get(), name);
  if (!place.directory) return std::unexpected(problem_with(logs.stdout_path, errno));
  logs.out = open_log(place, kStdoutSuffix, kReopening);
  AGBOX_TRY_VOID(take_over_empty(logs.out, logs.stdout_path));
  logs.err = open_log(place, kStderrSuffix, kReopening);
  AGBOX_TRY_VOID(take_over_empty(logs.err, logs.stderr_path));
  return logs;
}

Result<> append_exec_log_line(const store::v1::Exec& record, std::string line) {
  std::ranges::replace(line, '\n', ' ');
  line += '\n';
  const std::string& path = record.stderr_log_path();
  AGBOX_TRY(root, open_root(record.output_root()));
  const Place place = place_below(root.fd.get(), below(record.output_root(), path, kStderrSuffix));
  if (!place.directory) return std::unexpected(problem_with(path, errno));
  const UniqueFd file = open_log(place, kStderrSuffix, kReopeningToRead);
  AGBOX_TRY_VOID(take_over(file, path));
  if (has_last_line(file, line)) return {};
  if (const int problem = write_all(file.get(), line); problem != 0) {
    return std::unexpected(problem_with(path, problem));
  }
  return {};
}

}  // namespace agbox
