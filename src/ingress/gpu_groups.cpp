// SPDX-License-Identifier: Apache-2.0
#include "ingress/gpu_groups.h"

#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "model/reasons.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

Error not_inspected(const fs::path& path, const std::error_code& problem) {
  return {reason::kInvalidArgument,
          "gpus: cannot inspect " + path.string() + ": " + problem.message()};
}

// Adds the groups of the devices whose names begin so. A directory that does not exist has none.
Result<> add_groups(const fs::path& directory, std::string_view prefix, std::set<gid_t>& groups) {
  std::error_code problem;
  fs::directory_iterator entries(directory, problem);
  if (problem == std::errc::no_such_file_or_directory) return {};
  for (; !problem && entries != fs::directory_iterator(); entries.increment(problem)) {
    const fs::path path = entries->path();
    if (!path.filename().string().starts_with(prefix)) continue;
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) {
      return std::unexpected(not_inspected(path, {errno, std::generic_category()}));
    }
    const bool is_device = S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode);
    if (is_device && found.st_gid != 0) groups.insert(found.st_gid);
  }
  if (problem) return std::unexpected(not_inspected(directory, problem));
  return {};
}

}  // namespace

Result<std::set<gid_t>> gpu_groups(const fs::path& devices) {
  std::set<gid_t> groups;
  AGBOX_TRY_VOID(add_groups(devices, "nvidia", groups));
  AGBOX_TRY_VOID(add_groups(devices / "dri", "renderD", groups));
  return groups;
}

}  // namespace agbox
