// SPDX-License-Identifier: Apache-2.0
// What does the engine offer?
#pragma once

#include <algorithm>
#include <optional>

#include "base/text_file.h"
#include "engine/docker/doctor/check_context.h"
#include "model/spec/mount_point.h"

namespace agbox {

// Is the engine reachable and supported?
struct EngineCheck {
  static constexpr std::string_view kName = "engine";
  Result<EngineReport> engine;

  static EngineCheck gather(const EngineCheckContext& context) {
    return {.engine = context.engine};
  }

  void judge(Findings& findings) const {
    if (!engine) {
      return findings.broken(
          engine.error().message(),
          "sudo systemctl start docker; if you have no access to its socket: sudo "
          "usermod -aG docker $USER, and log in again");
    }
    if (!engine->unfit.empty()) {
      return findings.broken(engine->unfit,
                             "change the engine as described, then: sudo systemctl restart docker");
    }
    findings.ok(engine->title + " is reachable at " + engine->endpoint);
  }
};

// Do sandboxes keep running while the engine restarts?
struct LiveRestoreCheck {
  static constexpr std::string_view kName = "live-restore";
  std::optional<bool> is_enabled;  // nullopt if the engine is unreachable

  static LiveRestoreCheck gather(const EngineCheckContext& context) {
    if (!context.engine) return {};
    return {.is_enabled = context.engine->has_live_restore};
  }

  void judge(Findings& findings) const {
    if (!is_enabled) return findings.unknown("not checked: the engine is unreachable");
    if (*is_enabled) return findings.ok("sandboxes keep running while the engine restarts");
    findings.warn(
        "a restart of the engine stops every sandbox, with all that runs in it; agboxd then "
        "starts the sandbox again",
        "set \"live-restore\": true in /etc/docker/daemon.json, then: sudo systemctl reload "
        "docker");
  }
};

// Can the engine limit what a sandbox writes into its own files?
struct LayerQuotaCheck {
  static constexpr std::string_view kName = "layer-quota";
  std::string driver;              // empty if the engine is unreachable
  std::string backing_filesystem;  // empty if the engine does not report it
  std::string root_directory;
  std::optional<bool> has_project_quota;  // of its mount; nullopt if we do not see that mount

  static LayerQuotaCheck gather(const EngineCheckContext& context) {
    if (!context.engine) return {};
    const EngineReport& engine = *context.engine;
    return {.driver = engine.storage_driver,
            .backing_filesystem = engine.backing_filesystem,
            .root_directory = engine.root_directory,
            .has_project_quota = read_project_quota(engine.root_directory)};
  }

  void judge(Findings& findings) const {
    if (driver.empty()) return findings.unknown("not checked: the engine is unreachable");
    const std::string where = " (" + driver +
                              (backing_filesystem.empty() ? "" : " on " + backing_filesystem) +
                              " in " + root_directory + ")";
    const auto has_quota = can_limit();
    if (!has_quota) {
      findings.unknown(
          "whether the engine can limit what a sandbox writes cannot be seen from here" + where);
    } else if (*has_quota) {
      findings.ok("the engine can limit what a sandbox writes into its own files" + where);
    } else {
      findings.warn("the engine cannot limit what a sandbox writes into its own files" + where +
                        ": a sandbox can fill that disk",
                    "give the engine a data-root on XFS that is mounted with pquota, or a disk of "
                    "its own");
    }
  }

 private:
  std::optional<bool> can_limit() const {
    if (const auto known = can_limit_files(driver, backing_filesystem)) return known;
    return backing_filesystem.empty() ? std::nullopt : has_project_quota;
  }

  static std::optional<bool> read_project_quota(const std::string& directory) {
    const auto mounts = read_text_file("/proc/self/mountinfo");
    if (!mounts) return std::nullopt;
    const auto mount = mount_point_of(directory, *mounts);
    if (!mount || mount->filesystem != "xfs") return std::nullopt;
    return std::ranges::find(mount->options, "prjquota") != mount->options.end();
  }
};

}  // namespace agbox
