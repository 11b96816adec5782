// SPDX-License-Identifier: Apache-2.0
#include "model/doctor/diagnosis.h"

#include <ranges>
#include <string_view>

#include "model/doctor/findings.h"
#include "model/doctor/network_diagnosis.h"
#include "model/object_names.h"

namespace agbox {
namespace {

// Of a kind that there can be any number of.
constexpr std::size_t kMostNamed = 100;

std::string in_mib(std::uint64_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

void judge_engine(const Result<EngineFacts>& engine, Findings& findings) {
  if (!engine) {
    findings.broken("engine", engine.error().message(),
                    "sudo systemctl start docker; where you may not use its socket: sudo usermod "
                    "-aG docker $USER, and log in again");
    return;
  }
  if (!engine->unfit.empty()) {
    findings.broken("engine", engine->unfit,
                    "change the engine as the sentence says, then: sudo systemctl restart docker");
    return;
  }
  findings.ok("engine", engine->name + " answers at " + engine->socket);
}

void judge_live_restore(const EngineFacts& engine, Findings& findings) {
  if (engine.has_live_restore) {
    findings.ok("live-restore", "sandboxes go on while the engine restarts");
    return;
  }
  findings.warn(
      "live-restore",
      "a restart of the engine stops every sandbox, with all that runs in it; agboxd then "
      "starts the sandbox again",
      "set \"live-restore\": true in /etc/docker/daemon.json, then: sudo systemctl reload "
      "docker");
}

void judge_layer_quota(const LayerStorage& storage, Findings& findings) {
  const std::string where =
      storage.driver +
      (storage.backing_filesystem.empty() ? "" : " on " + storage.backing_filesystem) + " in " +
      storage.root_folder;
  const auto has_quota = has_layer_quota(storage);
  if (!has_quota) {
    findings.unknown(
        "layer-quota",
        "whether the engine can limit what a sandbox writes cannot be seen from here (" + where +
            ")");
  } else if (*has_quota) {
    findings.ok("layer-quota",
                "the engine can limit what a sandbox writes into its own files (" + where + ")");
  } else {
    findings.warn(
        "layer-quota",
        "the engine cannot limit what a sandbox writes into its own files (" + where +
            "): disk_limit is refused, and a sandbox can fill that disk",
        "give the engine a data-root on XFS that is mounted with pquota, or a disk of its "
        "own");
  }
}

void judge_store(const StoreFacts& facts, Findings& findings) {
  const std::string remedy = "make room on the disk of " + facts.path + "; it recovers by itself";
  if (facts.refuses_new_work) {
    findings.broken("store",
                    "the store " + facts.path + " has no room and refuses new work" +
                        (facts.waiting_changes == 0
                             ? ""
                             : "; " +
                                   counted(facts.waiting_changes, "accepted change waits",
                                           "accepted changes wait") +
                                   " for it"),
                    remedy);
  } else {
    findings.ok("store", facts.path + " takes new work");
  }
  if (facts.unreadable_sandboxes.empty()) return;
  findings.broken("stored-sandboxes",
                  "cannot be read from the store: " + listed(facts.unreadable_sandboxes),
                  "agbox sandbox get <sandbox_id> says why and what to do");
}

void judge_lock(const LockFacts& facts, Findings& findings) {
  if (!facts.is_held) {
    findings.unknown("lock", "whether agboxd holds " + facts.path + " cannot be seen");
  } else if (*facts.is_held) {
    findings.ok("lock", "agboxd holds " + facts.path);
  } else {
    findings.broken(
        "lock",
        "the lock file " + facts.path +
            " is not the one that agboxd holds: it was removed or replaced, and a second "
            "daemon could start",
        std::string(kRestartDaemon));
  }
}

void judge_guest_program(const GuestProgramFacts& facts, Findings& findings) {
  if (facts.is_there) {
    findings.ok("guest-program", facts.path + " is there for new sandboxes");
    return;
  }
  findings.broken(
      "guest-program",
      "the program that every sandbox begins with is gone, so none can start: " + facts.path,
      std::string(kRestartDaemon));
}

void judge_disk(const DiskFacts& disk, Findings& findings) {
  const std::string place = disk.path + " (" + disk.what + ")";
  if (!disk.problem.empty()) {
    findings.unknown("disk", "the disk of " + place + " cannot be looked at: " + disk.problem);
    return;
  }
  const std::string sentence = "the disk of " + place + " has " + in_mib(disk.left) +
                               " left, of which " + in_mib(disk.reserve) + " should stay free";
  const std::string remedy = "make room on the disk of " + disk.path;
  if (disk.left < disk.reserve && disk.holds_output) {
    findings.broken("disk", sentence + ": commands are refused until there is more", remedy);
  } else if (disk.left < 2 * disk.reserve) {
    findings.warn("disk", sentence, remedy);
  } else {
    findings.ok("disk", sentence);
  }
}

void judge_images(const Result<std::vector<ImageFacts>>& images, Findings& findings) {
  if (!images) {
    findings.unknown("images", "not looked at: " + images.error().message());
    return;
  }
  std::size_t there = 0;
  for (const ImageFacts& image : *images) {
    if (image.is_there) {
      ++there;
      continue;
    }
    findings.warn("images",
                  image.name + " is not on the engine" +
                      (image.is_of_sandbox ? ", though a sandbox was made of it" : "") +
                      ": the next create with it has to pull it",
                  "docker pull " + image.name);
  }
  if (there == images->size()) {
    findings.ok("images", there == 0 ? "no sandbox has an image yet"
                                     : counted(there, "image is", "images are") + " on the engine");
  }
}

void judge_strays(const Result<std::vector<StrayContainer>>& strays, Findings& findings) {
  if (!strays) {
    findings.unknown("unknown-primaries", "not looked at: " + strays.error().message());
    return;
  }
  for (const StrayContainer& stray : *strays | std::views::take(kMostNamed)) {
    findings.warn("unknown-primaries",
                  "container " + stray.container_name + " carries our label, for sandbox " +
                      stray.sandbox_id +
                      ", and the store does not know it, as after a backup was restored; agboxd "
                      "never removes it",
                  "docker rm -f " + stray.container_name + " once nothing in it is needed");
  }
  if (strays->size() > kMostNamed) {
    findings.warn("unknown-primaries",
                  "and " + std::to_string(strays->size() - kMostNamed) + " more of the kind",
                  "docker ps --all --filter label=" + instance_label());
  }
  if (strays->empty()) {
    findings.ok("unknown-primaries",
                "every primary container with our label is of a known sandbox");
  }
}

}  // namespace

std::optional<bool> has_layer_quota(const LayerStorage& storage) {
  if (storage.driver == "btrfs" || storage.driver == "zfs") return true;
  if (storage.driver != "overlay2") return false;
  if (storage.backing_filesystem.empty()) return std::nullopt;
  if (storage.backing_filesystem != "xfs") return false;
  return storage.has_project_quota;
}

v1::DiagnoseResponse judge_host(const DiagnosisFacts& facts) {
  Findings findings;
  judge_engine(facts.engine, findings);
  if (facts.engine) {
    judge_live_restore(*facts.engine, findings);
    judge_layer_quota(facts.engine->storage, findings);
  } else {
    for (const std::string_view check : {"live-restore", "layer-quota"}) {
      findings.unknown(check, "not looked at: the engine does not answer");
    }
  }
  diagnose_network(facts, findings);
  judge_store(facts.store, findings);
  judge_lock(facts.lock, findings);
  judge_guest_program(facts.guest_program, findings);
  for (const DiskFacts& disk : facts.disks) judge_disk(disk, findings);
  judge_images(facts.images, findings);
  judge_strays(facts.strays, findings);
  return findings.take();
}

}  // namespace agbox
