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

// Published on 127.0.0.1 only.
struct PortBinding {
  std::uint16_t container_port = 0;
  std::uint16_t host_port = 0;
  std::string protocol = "tcp";  // tcp, udp, sctp
};

struct HealthProbe {
  std::vector<std::string> test;  // {"NONE"} disables the image's own
  std::optional<std::chrono::nanoseconds> interval{};
  std::optional<std::chrono::nanoseconds> timeout{};
  std::optional<std::chrono::nanoseconds> start_period{};
  std::optional<std::chrono::nanoseconds> start_interval{};  // engines before API 1.44 have none
  std::uint32_t retries = 0;
};

struct ContainerUlimit {
  std::string name;
  std::int64_t soft = 0;
  std::int64_t hard = 0;
};

struct DeviceRequest {
  std::string driver;
  std::int64_t count = 0;  // -1: all
  std::vector<std::vector<std::string>> capabilities;
};

struct ContainerSpec {
  std::string name;
  std::string image;
  EngineLabels labels{};

  std::optional<std::vector<std::string>> entrypoint{};  // none: the image's
  std::optional<std::vector<std::string>> command{};     // none: the image's
  std::string user{};                                    // empty: the image's
  std::string working_dir{};
  std::string host_name{};
  std::vector<std::string> env{};  // NAME=value
  std::optional<HealthProbe> health{};
  std::string stop_signal{};

  std::vector<BindMount> mounts{};
  std::map<std::string, std::string> tmpfs{};  // target -> options
  std::string network{};                       // the only one that it joins
  std::vector<std::string> network_aliases{};
  std::string ipv4_address{};
  std::vector<std::string> dns{};
  std::vector<std::string> extra_hosts{};  // name:address
  std::vector<PortBinding> ports{};

  std::vector<std::string> capabilities_dropped{};
  std::vector<std::string> capabilities_added{};
  std::string seccomp_profile{};  // the JSON text
  std::vector<std::string> security_options{};
  std::vector<std::string> groups_added{};
  std::map<std::string, std::string> sysctls{};
  std::string ipc_mode{};
  bool has_readonly_root = false;
  bool has_engine_init = false;

  std::optional<std::int64_t> nano_cpus{};
  std::optional<std::int64_t> memory_bytes{};
  std::optional<std::int64_t> disk_bytes{};
  std::optional<std::int64_t> pids_limit{};
  std::vector<ContainerUlimit> ulimits{};
  std::vector<DeviceRequest> devices{};

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
  std::string gateway{};
  bool is_internal = false;
};

// The body of POST /networks/create.
std::string to_json(const NetworkSpec& spec, ApiVersion api);

}  // namespace agbox
