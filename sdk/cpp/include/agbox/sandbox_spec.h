// SPDX-License-Identifier: Apache-2.0
// What a sandbox is created from. The daemon checks all of it, and its errors name the field.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace agbox::sdk {

// A file or directory of this machine that is visible inside.
struct Mount {
  std::string source = {};  // absolute, or below ~
  std::string target = {};  // absolute, or below ~, which is /home/agbox
  bool writable = false;

  bool operator==(const Mount&) const = default;
};

// A copy of a file or directory of this machine, made when the sandbox is created.
struct Copy {
  std::string source = {};
  std::string target = {};
  std::vector<std::string> exclude_patterns = {};

  bool operator==(const Copy&) const = default;
};

enum class PortProtocol { Tcp = 0, Udp = 1, Sctp = 2 };

// A port of the sandbox, published on 127.0.0.1 of this machine.
struct Port {
  std::uint32_t container_port = 0;
  std::uint32_t host_port = 0;
  PortProtocol protocol = PortProtocol::Tcp;

  bool operator==(const Port&) const = default;
};

struct HealthCheck {
  std::vector<std::string> test = {};  // CMD or CMD-SHELL and its arguments, or NONE alone
  // Zero: the default of the engine.
  std::chrono::nanoseconds interval{0};
  std::chrono::nanoseconds timeout{0};
  std::uint32_t retries = 0;
  std::chrono::nanoseconds start_period{0};
  std::chrono::nanoseconds start_interval{0};
};

// A container next to the sandbox, such as a database. Its name is its host name there.
struct Service {
  std::string name = {};
  std::string image = {};
  std::map<std::string, std::string> envs = {};
  std::optional<HealthCheck> health_check = {};
  // Shell commands to run in the sandbox once this container is healthy.
  std::vector<std::string> post_start_on_primary = {};
  std::vector<std::string> command = {};
  std::string cpu_limit = {};
  std::string memory_limit = {};
  std::string disk_limit = {};
};

struct SandboxSpec {
  // Required, here or in config_yaml.
  std::string image = {};
  // Empty: generated, and if the daemon's response is lost the request is retried with it. A given
  // ID is sent once, because an older sandbox may have it. An ID is never reused.
  std::string id = {};
  // A YAML document with fields of the same meaning. The fields here override it.
  std::string config_yaml = {};
  // The main process. Empty: none, the sandbox runs until it is stopped.
  std::vector<std::string> command = {};
  bool bypass_entrypoint = false;  // ignore the ENTRYPOINT of the image
  std::vector<Mount> mounts = {};
  std::vector<Copy> copies = {};
  std::vector<Port> ports = {};
  std::vector<std::string> builtin_tools = {};  // such as "git"; see docs/builtin_tools.md
  // Started one after another; the sandbox is ready when all of them are healthy.
  std::vector<Service> required_services = {};
  // Started with the sandbox, which does not wait for them.
  std::vector<Service> optional_services = {};
  // As optional services, with commands in the sandbox once they are healthy.
  std::vector<Service> companion_containers = {};
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> envs = {};
  // Stops the sandbox after this long without a running command. Absent: the daemon's default.
  // Zero: never.
  std::optional<std::chrono::nanoseconds> idle_ttl = {};
  // Deletes the sandbox once no program has held it for this long, at least 1 s. The Sandbox object
  // holds it: so it is also deleted if this program crashes. Absent: it has no lease.
  std::optional<std::chrono::nanoseconds> lease_ttl = {};
  std::string cpu_limit = {};     // such as "1.5"
  std::string memory_limit = {};  // such as "512m"
  std::string disk_limit = {};
  std::string gpus = {};  // empty or "all"
};

}  // namespace agbox::sdk
