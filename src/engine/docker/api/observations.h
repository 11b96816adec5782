// SPDX-License-Identifier: Apache-2.0
// The engine's objects as values. Each read_... parses the body of an answer, or returns Garbled.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/docker/objects/object_owner.h"
#include "engine/engine_error.h"
#include "model/sandbox/container_usage.h"

namespace agbox {

struct ContainerSeen {
  std::string id;
  std::string name;
  EngineLabels labels;
  std::string status;  // created, running, paused, restarting, removing, exited, dead
  bool is_running = false;
  bool is_paused = false;
  bool is_restarting = false;
  bool is_dead = false;
  bool was_oom_killed = false;
  std::int64_t exit_code = 0;
  std::optional<WallTime> started_at;
  std::map<std::string, std::string> networks;  // by name: its IPv4 address there; may be empty
  std::vector<std::string> mount_targets;       // including those of volumes
  std::string health;        // starting, healthy, unhealthy; empty or none if nothing checks it
  std::string probe_output;  // of the latest check, for people
  std::vector<std::string> health_test;  // how the engine checks it: CMD and so on; may be empty
  std::string user;                      // that its programs begin as: USER of its image
  std::vector<std::string> shell;        // that runs such a check; empty: the engine's default

  // Actually running: the engine also reports "running" while it waits to restart a crashed
  // container.
  bool is_up() const { return is_running && !is_restarting && !is_dead; }
};
EngineResult<ContainerSeen> read_container(std::string_view body);

// One row of a list.
struct ContainerListed {
  struct Port {
    std::string host_address;  // empty if it is not published
    std::int64_t host_port = 0;
    std::string protocol;  // tcp, udp, sctp
  };
  std::string id;
  std::string name;
  std::string status;
  EngineLabels labels;
  std::vector<Port> ports{};  // while it runs
};
EngineResult<std::vector<ContainerListed>> read_container_list(std::string_view body);

// A file in a container, not followed if it is a link.
struct FileSeen {
  enum class Type { File, Directory, Link, Fifo, Socket, Device, Other };
  Type type = Type::Other;
  std::int64_t bytes = 0;
  // Where a link leads in the end, within the container; that may not exist. Bytes that are not
  // UTF-8 are replaced.
  std::string link_target;
};
// From the header X-Docker-Container-Path-Stat.
EngineResult<FileSeen> read_path_stat(std::string_view header);

struct NetworkSeen {
  std::string id;
  std::string name;
  std::string bridge_name;
  std::vector<std::string> subnets;
  EngineLabels labels;
  // Its endpoints: container ID and container name. Only when inspecting one network. One that the
  // engine kept though the container is gone has another key than an ID.
  std::map<std::string, std::string> members;
};
EngineResult<NetworkSeen> read_network(std::string_view body);
EngineResult<std::vector<NetworkSeen>> read_network_list(std::string_view body);

struct ImageSeen {
  std::string id;
  std::string user;
  std::vector<std::string> entrypoint;
  std::vector<std::string> volumes;
};
EngineResult<ImageSeen> read_image(std::string_view body);

// A process that was run in a container.
struct ExecSeen {
  bool is_running = false;
  std::optional<std::int64_t> exit_code;  // none before its end
  std::int64_t pid = 0;                   // as the engine sees it; 0 before its start
};
EngineResult<ExecSeen> read_exec(std::string_view body);

EngineResult<ContainerUsage> read_usage(std::string_view body);

// {"Id": "..."}, the answer to every create.
EngineResult<std::string> read_created_id(std::string_view body);

// One line of the event stream: a hint to inspect an object, not a record of what happened.
struct EngineEvent {
  std::string type;    // container, network, ...
  std::string action;  // die, oom, start, ..., "health_status: healthy"
  std::string object_id;
  std::map<std::string, std::string> attributes;  // name, exitCode, and the object's labels
};
EngineResult<EngineEvent> read_event(std::string_view line);

}  // namespace agbox
