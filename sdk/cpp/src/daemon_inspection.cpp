// SPDX-License-Identifier: Apache-2.0
#include <agbox/daemon_inspection.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/capability.h>
#include <sys/xattr.h>
#endif

#include <cerrno>
#include <charconv>
#include <sstream>
#include <system_error>

#include "base/capability.h"
#include "base/file_lock.h"
#include "base/text_file.h"
#include "engine_probe.h"
#include "paths/engine_endpoint.h"
#include "paths/fixed_paths.h"

namespace agbox::sdk {

namespace {

namespace fs = std::filesystem;

constexpr const char* kDaemonName = "agboxd";

// The daemon writes its PID into its lock file.
std::optional<int> holder_of(const fs::path& lock) {
  const auto text = read_text_file(lock);
  const auto locks = read_text_file("/proc/locks");
  struct stat found{};
  if (!text || !locks || ::stat(lock.c_str(), &found) != 0) return std::nullopt;
  int process = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), process);
  if (read.ec != std::errc() || !holds_flock(*locks, process, found.st_ino)) return std::nullopt;
  return process;
}

// Why this user cannot create or write the file; empty if it can.
std::string write_problem(const fs::path& file) {
  std::error_code ignored;
  fs::path existing = file;
  while (!fs::exists(existing, ignored) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (::access(existing.c_str(), W_OK) == 0) return {};
  return existing.string() + ": " + std::generic_category().message(errno);
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

fs::path find_daemon_program(const Environment& environment) {
  std::error_code problem;
  const fs::path ourselves = fs::read_symlink("/proc/self/exe", problem);
  if (!problem && is_program(ourselves.parent_path() / kDaemonName)) {
    return ourselves.parent_path() / kDaemonName;
  }
  const auto path = environment.find("PATH");
  if (path == environment.end()) return {};
  std::istringstream directories(path->second);
  for (std::string directory; std::getline(directories, directory, ':');) {
    if (!directory.empty() && is_program(fs::path(directory) / kDaemonName)) {
      return fs::path(directory) / kDaemonName;
    }
  }
  return {};
}

#ifdef __linux__
bool has_file_capability(const fs::path& program) {
  vfs_ns_cap_data data{};
  const ssize_t size = ::getxattr(program.c_str(), "security.capability", &data, sizeof(data));
  if (size < static_cast<ssize_t>(XATTR_CAPS_SZ_1)) return false;
  const bool is_effective = (data.magic_etc & VFS_CAP_FLAGS_EFFECTIVE) != 0;
  return is_effective && (data.data[0].permitted & CAP_TO_MASK(CAP_NET_ADMIN)) != 0;
}

bool may_change_firewall(const fs::path& program) {
  // Root passes its own on to the programs that it starts.
  return (::geteuid() == 0 && has_net_admin_capability()) || has_file_capability(program);
}
#else
bool may_change_firewall(const fs::path&) {
  return true;  // no capabilities, and no firewall rules
}
#endif

EngineInspection inspect_engine(const Environment& environment) {
  const auto socket = resolve_engine_socket(environment);
  if (!socket) return {.problem = socket.error().message()};
  return probe_engine(*socket);
}

}  // namespace

DaemonInspection inspect_daemon() {
  const Environment environment = current_environment();
  const Platform platform = current_platform();
  DaemonInspection inspection;
  if (const auto socket = resolve_socket_path(platform, environment); socket) {
    inspection.lock = socket->parent_path() / "agboxd.lock";
    inspection.lock_holder = holder_of(inspection.lock);
  } else {
    inspection.runtime_problem = socket.error().message();
  }
  if (const auto store = resolve_store(platform, environment); store) {
    inspection.store = *store;
    inspection.store_problem = write_problem(*store);
  } else {
    inspection.store_problem = store.error().message();
  }
  if (const auto config_file = resolve_config_file(platform, environment); config_file) {
    std::error_code ignored;
    inspection.config_file = *config_file;
    inspection.has_config_file = fs::exists(*config_file, ignored);
  } else {
    inspection.config_problem = config_file.error().message();
  }
  inspection.program = find_daemon_program(environment);
  inspection.may_change_firewall =
      !inspection.program.empty() && may_change_firewall(inspection.program);
  inspection.engine = inspect_engine(environment);
  return inspection;
}

}  // namespace agbox::sdk
