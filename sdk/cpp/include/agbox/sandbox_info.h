// SPDX-License-Identifier: Apache-2.0
// A sandbox as the daemon described it at one moment. What a newer daemon adds to an enumeration is
// passed on as its number.
#pragma once

#include <agbox/export.h>
#include <agbox/sandbox_spec.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace agbox::sdk {

using Time = std::chrono::system_clock::time_point;

enum class SandboxState {
  Unspecified = 0,
  Pending = 1,
  Ready = 2,
  Failed = 3,
  Stopped = 4,
  Deleting = 5,
  Deleted = 6,
};
// "READY"; "UNKNOWN_9" for a state of a newer daemon.
AGBOX_API std::string to_string(SandboxState state);

// In which list of the specification a service is.
enum class ServiceRole { Unspecified = 0, RequiredService = 1, OptionalService = 2, Companion = 3 };
enum class ServiceState { Unspecified = 0, Starting = 1, Ready = 2, Failed = 3, Stopped = 4 };

// A service or companion as it is now.
struct ServiceInfo {
  std::string name = {};
  ServiceRole role = ServiceRole::Unspecified;
  std::string image = {};
  ServiceState state = ServiceState::Unspecified;
  std::string health = {};  // "starting", "healthy", "unhealthy"; empty if it has no health check
  std::uint64_t restart_count = 0;
  std::string last_exit = {};
  std::string error_code = {};
  std::string error_message = {};
};

// A file, directory or socket of this machine that a builtin tool made visible inside.
struct BuiltinResource {
  std::string tool = {};
  std::string id = {};
  std::string source = {};
  std::string target = {};
  bool writable = false;
  bool is_socket = false;
  bool is_shadow_copy = false;  // a copy of the sandbox's own
};

struct SandboxInfo {
  std::string id = {};
  SandboxState state = SandboxState::Unspecified;
  // Of the state: Sandbox::events() from here has every later event.
  std::uint64_t last_event_sequence = 0;
  std::string image = {};
  std::map<std::string, std::string> labels = {};
  std::optional<Time> created_at = {};
  std::optional<Time> state_changed_at = {};
  // Why it failed, for programs and for people.
  std::string error_code = {};
  std::string error_message = {};
  // What it lacks of what was asked for, one sentence each.
  std::vector<std::string> warnings = {};
  // Why the latest verification of its isolation failed; empty if it holds.
  std::string isolation_problem = {};
  // Why its isolation could not be verified from inside lately; empty if it could.
  std::string isolation_unverified = {};
  std::optional<std::chrono::nanoseconds> lease_ttl = {};
  bool is_paused = false;  // until its isolation holds again
  // How often its container ended and was restarted, and how it ended most recently.
  std::uint64_t restart_count = 0;
  std::string last_exit = {};
  std::vector<Mount> mounts = {};
  std::vector<Copy> copies = {};  // without exclude_patterns
  std::vector<Port> ports = {};
  std::vector<ServiceInfo> services = {};
  std::vector<BuiltinResource> builtin_resources = {};
};

// What one container of a sandbox uses. Counters begin at zero with every start of the container.
struct ContainerStats {
  std::string name = {};  // "primary", or that of a service
  bool is_running = false;
  std::chrono::nanoseconds cpu_time{0};
  std::chrono::nanoseconds user_cpu{0};
  std::chrono::nanoseconds system_cpu{0};
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::optional<std::uint64_t> memory_peak_bytes = {};
  std::uint64_t pids = 0;  // processes and threads
  std::uint64_t network_rx_bytes = 0;
  std::uint64_t network_tx_bytes = 0;
  std::uint64_t block_read_bytes = 0;
  std::uint64_t block_write_bytes = 0;
};

struct SandboxStats {
  std::optional<Time> time = {};  // when it was measured
  std::vector<ContainerStats> containers = {};
};

}  // namespace agbox::sdk
