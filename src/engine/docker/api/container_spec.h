// SPDX-License-Identifier: Apache-2.0
// Specifications of containers and networks as values, and their JSON. What a sandbox needs is
// decided elsewhere; nothing is added here, except to exclude harm: no container is privileged,
// restarted or published by the engine on its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/docker/api/engine_identity.h"
#include "engine/docker/objects/object_owner.h"

namespace agbox {

struct BindMount {
  std::string source;
  std::string target;
  bool is_writable = false;
};

struct PublishedPort {
  std::string container_port;  // 80/tcp
  std::string host_address;
  std::string host_port;
};

struct ContainerUlimit {
  std::string name;
  std::int64_t soft = 0;
  std::int64_t hard = 0;
};

// As the engine runs it by itself. Zero: the engine's default.
struct HealthCheck {
  std::vector<std::string> test;  // CMD or CMD-SHELL and its arguments, or NONE alone
  std::chrono::nanoseconds interval{};
  std::chrono::nanoseconds timeout{};
  std::chrono::nanoseconds start_period{};
  std::chrono::nanoseconds start_interval{};  // ignored by engines before API 1.44
  std::int64_t retries = 0;
};

struct ContainerSpec {
  std::string name;
  std::string image;
  EngineLabels labels{};

  std::optional<std::vector<std::string>> entrypoint{};  // none: the image's
  std::optional<std::vector<std::string>> command{};     // none: the image's
  std::string user{};                                    // empty: the image's
  std::string working_dir{};
  std::vector<std::string> env{};             // NAME=value
  std::optional<HealthCheck> health_check{};  // none: the image's
  std::string stop_signal{};
  bool has_init = false;  // the engine's init is its first process

  std::vector<BindMount> mounts{};
  std::string network{};                       // the only one that it joins
  std::vector<std::string> network_aliases{};  // its names there
  std::vector<PublishedPort> ports{};
  std::vector<std::string> dns{};
  std::vector<std::string> extra_hosts{};  // name:address

  std::vector<std::string> capabilities_dropped{};
  std::vector<std::string> capabilities_added{};
  std::string seccomp_profile{};  // the JSON text
  std::map<std::string, std::string> sysctls{};
  std::string ipc_mode{};
  std::vector<std::string> masked_paths{};  // instead of the engine's; empty: the engine's

  std::optional<std::int64_t> nano_cpus{};
  std::optional<std::int64_t> memory_bytes{};
  std::optional<std::int64_t> pids_limit{};
  std::optional<std::int64_t> disk_bytes{};  // of its own files
  bool has_all_gpus = false;
  std::vector<std::string> groups{};  // supplemental, of its first process
  std::vector<ContainerUlimit> ulimits{};

  std::string log_driver{};
  std::map<std::string, std::string> log_options{};
};

// The body of POST /containers/create.
std::string to_json(const ContainerSpec& spec, ApiVersion api);

struct NetworkSpec {
  std::string name;
  EngineLabels labels{};
  std::string bridge_name{};  // empty: the engine's choice
  std::string subnet{};       // 10.201.0.16/28; empty: the engine's choice
  std::string gateway{};      // in the subnet; empty: the engine's choice
};

// The body of POST /networks/create.
std::string to_json(const NetworkSpec& spec, ApiVersion api);

}  // namespace agbox
