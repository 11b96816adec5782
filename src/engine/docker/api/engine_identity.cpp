// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/engine_identity.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <vector>

#include "engine/docker/api/json_reader.h"
#include "model/reasons.h"

namespace agbox {
namespace {

constexpr std::int64_t kMostCpus = 1'000'000;  // an engine that reports more cannot be right

std::string name_of(EngineKind kind) {
  return kind == EngineKind::Podman ? "Podman" : "Docker";
}

// "name=userns" and "name=seccomp,profile=default".
bool has_option(const std::vector<std::string>& options, std::string_view name) {
  return std::ranges::any_of(options, [&](std::string_view option) {
    const std::string_view first = option.substr(0, option.find(','));
    return first.starts_with("name=") && first.substr(5) == name;
  });
}

// One of the driver's key-value pairs. They are informational, so unreadable ones are ignored.
std::string backing_filesystem_of(const boost::json::value& info) {
  std::string ignored;
  for (const JsonReader& fact : JsonReader(info, ignored)["DriverStatus"].items()) {
    const std::vector<std::string> pair = fact.texts();
    if (pair.size() == 2 && pair[0] == "Backing Filesystem") return pair[1];
  }
  return {};
}

}  // namespace

std::optional<ApiVersion> parse_api_version(std::string_view text) {
  ApiVersion version;
  const char* end = text.data() + text.size();
  const auto [dot, problem] = std::from_chars(text.data(), end, version.major);
  if (problem != std::errc() || dot == end || *dot != '.') return std::nullopt;
  const auto [last, more] = std::from_chars(dot + 1, end, version.minor);
  if (more != std::errc() || last != end) return std::nullopt;
  if (version.major < 0 || version.minor < 0 || version.major > 999 || version.minor > 9999) {
    return std::nullopt;
  }
  return version;
}

EngineResult<EngineVersion> read_engine_version(std::string_view body) {
  AGBOX_TRY(document, parse_json(body));
  std::string problem;
  const JsonReader answer(document, problem);
  EngineVersion version;
  version.version = answer["Version"].text();
  const auto newest = parse_api_version(answer["ApiVersion"].text());
  const auto oldest = parse_api_version(answer["MinAPIVersion"].text());
  for (const JsonReader& component : answer["Components"].items()) {
    if (component["Name"].text() == "Podman Engine") version.kind = EngineKind::Podman;
  }
  if (!problem.empty()) return engine_fail(EngineErrorKind::Garbled, problem);
  if (!newest) {
    return engine_fail(EngineErrorKind::Garbled, "the engine does not report its API version");
  }
  version.newest_api = *newest;
  version.oldest_api = oldest.value_or(ApiVersion{1, 0});
  return version;
}

Result<ApiVersion> negotiate(const EngineVersion& version) {
  const std::string engine = name_of(version.kind) + " " + version.version;
  if (version.newest_api < kOldestApi) {
    return fail(reason::kEngineUnavailable,
                engine + " is too old: it speaks API " + version.newest_api.text() + ", and API " +
                    kOldestApi.text() + " (Docker 20.10) or newer is needed");
  }
  if (version.oldest_api > kNewestApi) {
    return fail(reason::kEngineUnavailable,
                engine + " is too new: it wants API " + version.oldest_api.text() +
                    " or newer, and this program speaks API up to " + kNewestApi.text() +
                    "; install a newer agents-sandbox");
  }
  return std::min(version.newest_api, kNewestApi);
}

EngineResult<EngineIdentity> read_engine_identity(std::string_view info_body,
                                                  const EngineVersion& version, ApiVersion api) {
  AGBOX_TRY(document, parse_json(info_body));
  std::string problem;
  const JsonReader info(document, problem);
  EngineIdentity engine;
  engine.kind = version.kind;
  engine.version = version.version;
  engine.api = api;
  engine.os_type = info["OSType"].text();
  engine.storage_driver = info["Driver"].text();
  engine.backing_filesystem = backing_filesystem_of(document);
  engine.root_directory = info["DockerRootDir"].text();
  engine.firewall_backend = info["FirewallBackend"]["Driver"].text();
  engine.cpus = std::clamp<std::int64_t>(info["NCPU"].number(), 0, kMostCpus);
  engine.has_live_restore = info["LiveRestoreEnabled"].flag();
  const std::vector<std::string> options = info["SecurityOptions"].texts();
  engine.has_seccomp = has_option(options, "seccomp");
  engine.is_rootless = has_option(options, "rootless") || info["Rootless"].flag();
  engine.remaps_users = has_option(options, "userns");
  engine.has_selinux = has_option(options, "selinux");
  // Podman generates a new ID for every answer.
  engine.id = version.kind == EngineKind::Podman
                  ? "podman:" + info["Name"].text() + ":" + engine.root_directory
                  : info["ID"].required_text();
  if (!problem.empty()) return engine_fail(EngineErrorKind::Garbled, problem);
  return engine;
}

std::optional<bool> can_limit_files(std::string_view driver, std::string_view backing_filesystem) {
  if (driver == "btrfs" || driver == "zfs") return true;
  if (driver != "overlay2") return false;
  if (backing_filesystem.empty() || backing_filesystem == "xfs") return std::nullopt;
  return false;
}

std::string title_of(const EngineIdentity& engine) {
  return name_of(engine.kind) + " " + engine.version + " (API " + engine.api.text() + ")";
}

Result<> judge(const EngineIdentity& engine) {
  const std::string name = name_of(engine.kind) + " " + engine.version;
  const auto refuse = [&](std::string_view why) {
    return fail(reason::kEngineUnavailable, name + " cannot run sandboxes: " + std::string(why));
  };
  if (engine.kind == EngineKind::Podman) {
    return refuse(
        "it answers the names of containers from the host's own network, which a sandbox must not "
        "reach; use Docker 20.10 or newer");
  }
  if (engine.os_type != "linux") {
    return refuse("its containers run on " +
                  (engine.os_type.empty() ? "an unknown system" : engine.os_type) +
                  "; an engine for Linux containers is needed");
  }
  if (engine.is_rootless) {
    return refuse(
        "it is rootless, so its networks are out of reach of the host's firewall; an engine that "
        "runs as root is needed");
  }
  if (engine.remaps_users) {
    return refuse(
        "it maps users (userns-remap), so files of the sandbox would not belong to you; remove "
        "userns-remap from /etc/docker/daemon.json");
  }
  if (engine.has_selinux) {
    return refuse(
        "it gives containers SELinux labels, which your files do not carry; remove "
        "selinux-enabled from /etc/docker/daemon.json");
  }
  if (!engine.has_seccomp) {
    return refuse(
        "it has no seccomp, so system calls cannot be limited; a kernel and an engine with seccomp "
        "are needed");
  }
  return {};
}

}  // namespace agbox
