// SPDX-License-Identifier: Apache-2.0
#include "control/exec_logs.h"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

namespace agbox {

Result<std::filesystem::path> make_exec_log_folder(const store::v1::CreatedWith& created_with,
                                                   const std::string& sandbox_id) {
  const std::filesystem::path root(created_with.exec_output_root());
  std::filesystem::path folder = root / sandbox_id;
  std::error_code problem;
  std::filesystem::create_directories(root, problem);
  if (problem) {
    return fail(Reason::Internal, "create exec log directory: " + root.string() + ": " +
                                      problem.message() + "; see artifacts.exec_output_root");
  }
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return std::unexpected(errno_error("create exec log directory: " + folder.string(), errno));
  }
  struct stat found{};
  if (::lstat(folder.c_str(), &found) != 0) {
    return std::unexpected(errno_error("create exec log directory: " + folder.string(), errno));
  }
  if (!S_ISDIR(found.st_mode)) {
    return fail(Reason::Internal,
                "create exec log directory: something that is not a folder is at " +
                    folder.string() + "; move it away");
  }
  return folder;
}

}  // namespace agbox
