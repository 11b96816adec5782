// SPDX-License-Identifier: Apache-2.0
// The engine's objects as values. Each read_... parses the body of an answer, or returns Garbled.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/docker/objects/object_owner.h"
#include "engine/engine_error.h"

namespace agbox {

enum class HealthStatus { None, Starting, Healthy, Unhealthy };

struct HealthSeen {
  HealthStatus status = HealthStatus::None;
  std::int64_t failing_streak = 0;
  std::string last_output;
};

struct MountSeen {
  std::string type;
  std::string source;
  std::string target;
  bool is_writable = false;
};

struct AttachmentSeen {
  std::string network_id;
  std::string ipv4_address;
  std::string gateway;
  std::vector<std::string> aliases;
};

struct ContainerSeen {
  std::string id;
  std::string name;
  std::string image_id;
  std::string image;
  EngineLabels labels;
  std::string status;  // created, running, paused, restarting, removing, exited, dead
  bool is_running = false;
  bool is_paused = false;
  bool is_restarting = false;
  bool is_dead = false;
  bool was_oom_killed = false;
  std::int64_t pid = 0;
  std::int64_t exit_code = 0;
  std::string error;
  std::optional<WallTime> created_at;
  std::optional<WallTime> started_at;
  std::optional<WallTime> finished_at;
  std::optional<HealthSeen> health;
  std::vector<MountSeen> mounts;
  std::map<std::string, AttachmentSeen> networks;  // by name

  // Actually running: the engine also reports "running" while it waits to restart a crashed
  // container.
  bool is_up() const { return is_running && !is_restarting && !is_dead; }
};
EngineResult<ContainerSeen> read_container(std::string_view body);

// One row of a list.
struct ContainerListed {
  std::string id;
  std::string name;
  std::string image;
  std::string status;
  EngineLabels labels;
};
EngineResult<std::vector<ContainerListed>> read_container_list(std::string_view body);

struct NetworkSeen {
  std::string id;
  std::string name;
  std::string driver;
  std::string bridge_name;
  std::vector<std::string> subnets;
  std::vector<std::string> gateways;
  EngineLabels labels;
  bool has_ipv6 = false;
  bool is_internal = false;
  std::vector<std::string> container_ids;  // only when inspecting one network
};
EngineResult<NetworkSeen> read_network(std::string_view body);
EngineResult<std::vector<NetworkSeen>> read_network_list(std::string_view body);

struct ImageSeen {
  std::string id;
  std::vector<std::string> tags;
  std::vector<std::string> digests;
  std::string os;
  std::string architecture;
  std::int64_t size_bytes = 0;
  std::string user;
  std::string working_dir;
  std::string stop_signal;
  std::vector<std::string> env;
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::string> volumes;
  EngineLabels labels;
  bool has_health_check = false;
};
EngineResult<ImageSeen> read_image(std::string_view body);

// {"Id": "..."}, the answer to every create.
EngineResult<std::string> read_created_id(std::string_view body);

// {"StatusCode": 0}, the answer of a wait.
EngineResult<std::int64_t> read_wait(std::string_view body);

// One line of the event stream: a hint to inspect an object, not a record of what happened.
struct EngineEvent {
  std::string type;    // container, network, ...
  std::string action;  // die, oom, start, ..., "health_status: healthy"
  std::string object_id;
  std::map<std::string, std::string> attributes;  // name, exitCode, and the object's labels
  std::optional<WallTime> occurred_at;
};
EngineResult<EngineEvent> read_event(std::string_view line);

}  // namespace agbox
