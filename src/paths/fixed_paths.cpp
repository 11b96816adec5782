// SPDX-License-Identifier: Apache-2.0
#include "paths/fixed_paths.h"

#include <unistd.h>

#include <string_view>

namespace agbox {
namespace {

namespace fs = std::filesystem;

// The variable's value; empty if unset or empty. A relative path is an error, because it would
// depend on the caller's working directory.
Result<fs::path> absolute_path_from(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return fs::path();
  fs::path path(found->second);
  if (path.is_relative()) {
    return fail(reason::kInvalidArgument,
                name + " must be an absolute path, but is \"" + found->second + "\"");
  }
  return path;
}

Result<fs::path> home(const Environment& environment) {
  AGBOX_TRY(path, absolute_path_from(environment, "HOME"));
  if (path.empty()) {
    return fail(reason::kInvalidArgument, "HOME is not set; set it to your home directory");
  }
  return path;
}

// $variable/name, or ~/fallback/name.
Result<fs::path> xdg_directory(const Environment& environment, const std::string& variable,
                               std::string_view fallback, std::string_view name) {
  AGBOX_TRY(base, absolute_path_from(environment, variable));
  if (!base.empty()) return base / name;
  AGBOX_TRY(user, home(environment));
  return user / fallback / name;
}

Result<fs::path> runtime_directory(Platform platform, const Environment& environment) {
  AGBOX_TRY(base, absolute_path_from(environment, "XDG_RUNTIME_DIR"));
  if (!base.empty()) return base / "agbox";
  if (platform == Platform::Linux) {
    return fail(
        reason::kInvalidArgument,
        "resolve runtime path: XDG_RUNTIME_DIR is required on linux; a login session sets it "
        "to /run/user/<uid>, elsewhere set it to a directory that only you can access");
  }
  AGBOX_TRY(user, home(environment));
  return user / "Library/Application Support/agbox/run";
}

std::string_view config_fallback(Platform platform) {
  return platform == Platform::Linux ? ".config" : "Library/Application Support";
}

std::string_view data_fallback(Platform platform) {
  return platform == Platform::Linux ? ".local/share" : "Library/Application Support";
}

std::string_view state_fallback(Platform platform) {
  return platform == Platform::Linux ? ".local/state" : "Library/Application Support";
}

Result<fs::path> data_directory(Platform platform, const Environment& environment) {
  return xdg_directory(environment, "XDG_DATA_HOME", data_fallback(platform), "agents-sandbox");
}

}  // namespace

Result<fs::path> resolve_config_file(Platform platform, const Environment& environment) {
  AGBOX_TRY(config, xdg_directory(environment, "XDG_CONFIG_HOME", config_fallback(platform),
                                  "agents-sandbox"));
  return config / "config.toml";
}

Result<fs::path> resolve_store(Platform platform, const Environment& environment) {
  AGBOX_TRY(data, data_directory(platform, environment));
  return data / "ids.db";
}

Result<fs::path> resolve_agent_definitions(Platform platform, const Environment& environment) {
  AGBOX_TRY(config, resolve_config_file(platform, environment));
  return config.parent_path() / "agents";
}

Result<fs::path> resolve_workspace_records(Platform platform, const Environment& environment) {
  AGBOX_TRY(state, xdg_directory(environment, "XDG_STATE_HOME", state_fallback(platform),
                                 "agents-sandbox"));
  return state / "workspaces";
}

Result<fs::path> resolve_socket_path(Platform platform, const Environment& environment) {
  AGBOX_TRY(runtime, runtime_directory(platform, environment));
  return runtime / "agboxd.sock";
}

Result<FixedPaths> resolve_fixed_paths(Platform platform, const Environment& environment) {
  AGBOX_TRY(runtime, runtime_directory(platform, environment));
  AGBOX_TRY(config_file, resolve_config_file(platform, environment));
  AGBOX_TRY(data, data_directory(platform, environment));
  return FixedPaths{
      .runtime_directory = runtime,
      .socket = runtime / "agboxd.sock",
      .lock = runtime / "agboxd.lock",
      .config_file = config_file,
      .store = data / "ids.db",
      .default_exec_output_root = data / "exec-logs",
      .default_state_root = data / "state",
  };
}

Platform current_platform() {
#ifdef __APPLE__
  return Platform::MacOs;
#else
  return Platform::Linux;
#endif
}

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace agbox
