// SPDX-License-Identifier: Apache-2.0
#include "cli/workspace/record.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/text_file.h"
#include "model/ids.h"
#include "paths/fixed_paths.h"

namespace agbox::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kWorkspaceFile = "workspace";
constexpr const char* kAgentFile = "agent";
constexpr const char* kIgnoredFile = "ignored";
constexpr mode_t kOwnerOnly = 0700;

Result<> write_file(const fs::path& path, std::string_view content) {
  const UniqueFd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  const int problem = file ? write_all(file.get(), content) : errno;
  if (problem != 0) return std::unexpected(errno_error("write " + path.string(), problem));
  return {};
}

Result<> make_directory(const fs::path& path) {
  if (::mkdir(path.c_str(), kOwnerOnly) == 0 || errno == EEXIST) return {};
  return std::unexpected(errno_error("create " + path.string(), errno));
}

}  // namespace

PathSet::PathSet(std::string_view listed) {
  while (!listed.empty()) {
    const std::size_t end = listed.find('\0');
    std::string_view path = listed.substr(0, end);
    listed.remove_prefix(end == std::string_view::npos ? listed.size() : end + 1);
    if (path.ends_with('/')) {
      path.remove_suffix(1);
      directories_.emplace(path);
    } else if (!path.empty()) {
      files_.emplace(path);
    }
  }
}

bool PathSet::contains(std::string_view path) const {
  if (files_.contains(path)) return true;
  if (directories_.empty()) return false;
  for (std::size_t slash = path.find('/'); slash != std::string_view::npos;
       slash = path.find('/', slash + 1)) {
    if (directories_.contains(path.substr(0, slash))) return true;
  }
  return directories_.contains(path);
}

Result<fs::path> WorkspaceRecord::root() {
  return resolve_workspace_records(current_platform(), current_environment());
}

Result<WorkspaceRecord> WorkspaceRecord::create(const std::string& sandbox_id,
                                                const fs::path& workspace,
                                                const std::string& agent) {
  AGBOX_TRY_VOID(check_id("sandbox_id", sandbox_id));
  AGBOX_TRY(records, root());
  std::error_code problem;
  fs::create_directories(records.parent_path(), problem);
  AGBOX_TRY_VOID(make_directory(records));
  WorkspaceRecord record(records / sandbox_id);
  fs::remove_all(record.directory_, problem);
  AGBOX_TRY_VOID(make_directory(record.directory_));
  std::string ignored;
  if (is_in_git_work_tree(workspace)) {
    AGBOX_TRY(listed, run_users_git(workspace, {"ls-files", "-z", "--others", "--ignored",
                                                "--exclude-standard", "--directory"}));
    if (listed.exit_code != 0) {
      return fail(reason::kHostNotReady,
                  "git ls-files in " + workspace.string() + ": " + listed.error);
    }
    ignored = std::move(listed.out);
  }
  AGBOX_TRY_VOID(write_file(record.directory_ / kIgnoredFile, ignored));
  AGBOX_TRY_VOID(write_file(record.directory_ / kAgentFile, agent));
  AGBOX_TRY_VOID(record.store().create());
  // The last one: without it there is no record.
  AGBOX_TRY_VOID(write_file(record.directory_ / kWorkspaceFile, workspace.string()));
  return load(record.directory_);
}

Result<WorkspaceRecord> WorkspaceRecord::load(const fs::path& directory) {
  WorkspaceRecord record(directory);
  const auto workspace = read_text_file(directory / kWorkspaceFile);
  std::error_code problem;
  record.written_at_ = fs::last_write_time(directory / kWorkspaceFile, problem);
  if (!workspace || problem) {
    return fail(reason::kHostNotReady, directory.string() + " is not a record of a workspace");
  }
  record.sandbox_id_ = directory.filename().string();
  record.workspace_ = *workspace;
  record.agent_ = read_text_file(directory / kAgentFile).value_or("");
  return record;
}

Result<std::vector<WorkspaceRecord>> WorkspaceRecord::list() {
  AGBOX_TRY(records, root());
  std::vector<WorkspaceRecord> out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(records, problem)) {
    // One that is being created, or removed, is none.
    if (auto record = load(entry.path())) out.push_back(std::move(*record));
  }
  if (problem && problem != std::errc::no_such_file_or_directory) {
    return std::unexpected(errno_error("read " + records.string(), problem.value()));
  }
  std::ranges::sort(out, std::ranges::greater(), &WorkspaceRecord::written_at_);
  return out;
}

Result<WorkspaceRecord> WorkspaceRecord::find(const std::string& given) {
  AGBOX_TRY(records, list());
  std::vector<WorkspaceRecord> found;
  for (WorkspaceRecord& record : records) {
    if (record.sandbox_id() == given) return std::move(record);
    if (!given.empty() && record.sandbox_id().starts_with(given)) {
      found.push_back(std::move(record));
    }
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) {
    return fail(reason::kInvalidArgument,
                "nothing is recorded of sandbox \"" + given +
                    "\": only agent sessions with a copied workspace are; see agbox diff --list");
  }
  std::string names;
  for (const WorkspaceRecord& record : found) names += "\n  " + record.sandbox_id();
  return fail(reason::kInvalidArgument, "\"" + given + "\" is the beginning of " +
                                            std::to_string(found.size()) +
                                            " sandbox IDs; type more of it:" + names);
}

Result<PathSet> WorkspaceRecord::ignored() const {
  const auto listed = read_text_file(directory_ / kIgnoredFile);
  if (listed) return PathSet(*listed);
  return fail(reason::kHostNotReady, (directory_ / kIgnoredFile).string() + " cannot be read");
}

Result<fs::path> WorkspaceRecord::scratch() const {
  fs::path path = directory_ / "scratch";
  std::error_code problem;
  fs::remove_all(path, problem);
  AGBOX_TRY_VOID(make_directory(path));
  return path;
}

Result<UniqueFd> WorkspaceRecord::lock() const {
  UniqueFd directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int taken = -1;
  while (directory && (taken = ::flock(directory.get(), LOCK_EX)) != 0 && errno == EINTR) {
  }
  if (taken != 0) return std::unexpected(errno_error("lock " + directory_.string(), errno));
  return directory;
}

void WorkspaceRecord::touch() const {
  std::error_code ignored;  // it is then removed earlier
  fs::last_write_time(directory_ / kWorkspaceFile, fs::file_time_type::clock::now(), ignored);
}

void WorkspaceRecord::remove() const {
  std::error_code ignored;  // what is left is removed with the next session
  fs::remove(directory_ / kWorkspaceFile, ignored);
  fs::remove_all(directory_, ignored);
}

bool is_in_git_work_tree(const fs::path& directory) {
  const auto answer = run_users_git(directory, {"rev-parse", "--is-inside-work-tree"});
  return answer && answer->exit_code == 0 && answer->out == "true\n";
}

}  // namespace agbox::cli
