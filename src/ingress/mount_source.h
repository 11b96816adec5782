// SPDX-License-Identifier: Apache-2.0
// The host's side of a mount, a copy or a builtin tool. A source is resolved once, when its sandbox
// is accepted: from then on no symbolic link on the way to it is followed, and it has to be the
// same file at every start.
//
// Every call may wait for a disk.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "ingress/file_identity.h"
#include "ingress/forbidden_sources.h"

namespace agbox {

// The user that commands of a sandbox run as. Root may write everywhere.
struct RuntimeIdentity {
  uid_t uid = 0;
  gid_t gid = 0;
};

// Open: as long as it exists, no other file can get its identity.
struct PinnedSource {
  UniqueFd fd;       // O_PATH
  std::string path;  // without links
  FileIdentity identity{};
  std::int64_t birth_time = 0;  // when it was created; 0 if its filesystem does not say
};

// What a thread inspects now, for another one: its disk may hang.
class InspectedNow {
 public:
  void set(std::string name) {
    const std::lock_guard lock(mutex_);
    name_ = std::move(name);
  }
  std::string name() const {
    const std::lock_guard lock(mutex_);
    return name_;
  }

 private:
  mutable std::mutex mutex_;
  std::string name_;
};

enum class SourceUse { Mount, Copy, ToolDirectory, ToolFile, ToolSocket };

struct SourceRequest {
  std::string path;  // as the caller gave it; "~" is the home directory
  bool is_writable = false;
  SourceUse use = SourceUse::Mount;
};

// What messages call it; callers add which tool it belongs to.
std::string name_of(SourceUse use);
// With its path: "mount source /srv/project".
std::string name_of(const SourceRequest& request);

struct SourceRules {
  std::filesystem::path home;  // of the daemon's user; empty if unknown
  RuntimeIdentity user;
  const ForbiddenSources& forbidden;
  std::vector<std::filesystem::path> engine_files;  // which are forbidden too
  InspectedNow* inspected = nullptr;
};

struct ResolvedSources {
  std::vector<PinnedSource> sources;  // in the order of the requests
  std::string boot_id;                // of this host, now
};

// Fails with the first that is not possible.
Result<ResolvedSources> resolve_mount_sources(const std::vector<SourceRequest>& requests,
                                              const SourceRules& rules);

// A source that was found and opened.
struct OpenSource {
  UniqueFd fd;        // O_PATH
  std::string path;   // without links
  std::string asked;  // as it was before, for messages
  bool is_writable = false;
  SourceUse use = SourceUse::Mount;
};

// Refuses what no sandbox may see. Its path is not resolved again.
Result<PinnedSource> pin_source(OpenSource source, const SourceRules& rules);

// What was resolved when a sandbox was accepted.
struct KnownSource {
  std::string path;
  FileIdentity identity;
  std::int64_t birth_time = 0;  // 0 if it is not known
  std::string boot_id;          // in another boot the device may have another number
  SourceUse use = SourceUse::Mount;
  uid_t user = 0;  // of the daemon
};

// At a later start. MOUNT_CHANGED if one is gone, is a link now or is another file. Programs save a
// file by replacing it, and make their socket again when they start: a tool's may be another one of
// the same kind that belongs to the daemon's user, and that a new sandbox could have.
Result<std::vector<PinnedSource>> reopen_mount_sources(const std::vector<KnownSource>& known,
                                                       const ForbiddenSources& forbidden,
                                                       InspectedNow* inspected = nullptr);
std::string name_of(const KnownSource& known);

// For what is copied: it has no successor.
Result<PinnedSource> reopen_copy_source(const KnownSource& known);

}  // namespace agbox
