// SPDX-License-Identifier: Apache-2.0
// Identifies the engine behind the socket and decides whether it can run sandboxes. Pure: the
// engine's answers go in, a verdict comes out.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine_error.h"

namespace agbox {

struct ApiVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ApiVersion&) const = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

std::optional<ApiVersion> parse_api_version(std::string_view text);

// Supported API versions. The oldest is Docker 20.10.
inline constexpr ApiVersion kOldestApi{1, 41};
inline constexpr ApiVersion kNewestApi{1, 56};

enum class EngineKind { Docker, Podman };

// The answer of GET /version.
struct EngineVersion {
  EngineKind kind = EngineKind::Docker;
  std::string version;
  ApiVersion newest_api;
  ApiVersion oldest_api;
};
EngineResult<EngineVersion> read_engine_version(std::string_view body);

// The newest version that both sides support.
Result<ApiVersion> negotiate(const EngineVersion& version);

struct EngineIdentity {
  std::string id;  // stable across restarts of the engine
  EngineKind kind = EngineKind::Docker;
  std::string version;
  ApiVersion api;  // the negotiated one
  std::string os_type;
  std::string storage_driver;
  std::string backing_filesystem;  // of the driver; may be empty
  std::string root_directory;
  std::string firewall_backend;  // empty before Docker 29
  std::int64_t cpus = 0;         // 0 if not known
  bool has_live_restore = false;
  bool has_seccomp = false;
  bool is_rootless = false;
  bool remaps_users = false;
  bool has_selinux = false;

  bool operator==(const EngineIdentity&) const = default;
};
EngineResult<EngineIdentity> read_engine_identity(std::string_view info_body,
                                                  const EngineVersion& version, ApiVersion api);

// Whether a storage driver on this filesystem can limit the files of a container. nullopt if that
// depends on how the filesystem is mounted, or it is not known.
std::optional<bool> can_limit_files(std::string_view driver, std::string_view backing_filesystem);

// Human-readable: "Docker 28.5.2 (API 1.51)".
std::string title_of(const EngineIdentity& engine);

// Refuses an engine that cannot run sandboxes safely; the message names the requirement.
Result<> judge(const EngineIdentity& engine);

}  // namespace agbox
