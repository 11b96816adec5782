// SPDX-License-Identifier: Apache-2.0
// Is space left on the disks of output, store, state and engine?
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>

#include "async/run_blocking.h"
#include "execlog/disk_space.h"
#include "place/local/doctor/local_diagnosis.h"

namespace agbox {

struct DiskCheck {
  static constexpr std::string_view kName = "disk";

  struct Disk {
    std::string what;  // "output of commands, store"
    std::string path;
    bool holds_output = false;  // of commands, which are refused while the reserve is not free
    DiskSpace space{};
    std::string problem{};  // why it cannot be inspected; empty if it can
    std::optional<dev_t> device = {};
  };
  std::vector<Disk> disks;  // each filesystem once

  static asio::awaitable<DiskCheck> gather(const LocalCheckContext& context) {
    std::vector<Disk> disks = {
        {.what = "output of commands", .path = context.output_root, .holds_output = true},
        {.what = "store", .path = context.request.store},
        {.what = "state", .path = context.state_root}};
    if (const auto& engine = context.request.engine_directory; !engine.empty()) {
      disks.push_back({.what = "containers and images", .path = engine});
    }
    co_return co_await run_blocking(context.blocking,
                                    [&disks] { return inspect(std::move(disks)); });
  }

  void judge(Findings& findings) const {
    for (const Disk& disk : disks) judge_disk(disk, findings);
  }

 private:
  static void judge_disk(const Disk& disk, Findings& findings) {
    const std::string place = "the disk of " + disk.path + " (" + disk.what + ")";
    if (!disk.problem.empty()) {
      return findings.unknown(place + " cannot be inspected: " + disk.problem);
    }
    const auto& [left, reserve] = disk.space;
    const std::string sentence =
        place + " has " + in_mib(left) + " left, of which " + in_mib(reserve) + " should stay free";
    const std::string remedy = "free space on the disk of " + disk.path;
    if (left < reserve && disk.holds_output) {
      findings.broken(sentence + ": commands are refused until there is more", remedy);
    } else if (left < 2 * reserve) {
      findings.warn(sentence, remedy);
    } else {
      findings.ok(sentence);
    }
  }

  static std::string in_mib(std::uint64_t bytes) { return std::to_string(bytes / kMiB) + " MiB"; }

  static DiskCheck inspect(std::vector<Disk> things) {
    DiskCheck check;
    for (Disk& disk : things) {
      inspect(disk);
      const auto same = std::ranges::find(check.disks, disk.device, &Disk::device);
      if (disk.device && same != check.disks.end()) {
        same->what += ", " + disk.what;
      } else {
        check.disks.push_back(std::move(disk));
      }
    }
    return check;
  }

  static void inspect(Disk& disk) {
    std::filesystem::path path = disk.path;
    std::error_code ignored;  // an unreadable directory counts as missing: its parent is on a disk
    while (!std::filesystem::exists(path, ignored) && path.has_relative_path()) {
      path = path.parent_path();
    }
    struct stat found{};
    if (::stat(path.c_str(), &found) == 0) disk.device = found.st_dev;
    struct statvfs filesystem{};
    if (::statvfs(path.c_str(), &filesystem) == 0) {
      disk.space = disk_space(filesystem);
    } else {
      disk.problem = std::generic_category().message(errno);
    }
  }
};

}  // namespace agbox
