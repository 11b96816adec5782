// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/container_settings.h"

#include <unistd.h>

#include "guestwire/place.h"
#include "model/network/sandbox_subnet.h"
#include "model/object_names.h"
#include "model/spec/builtin_tools.h"
#include "model/spec/ports.h"

namespace agbox {
namespace {

constexpr std::int64_t kPidsLimit = 4096;

Labels user_labels(const SandboxFacts& facts) {
  const auto& labels = facts.spec.create_spec.labels();
  return {labels.begin(), labels.end()};
}

std::vector<std::string> environment(const SandboxFacts& facts) {
  std::map<std::string, std::string> variables;
  for (const auto& tool : facts.created_with.tools()) {
    const ToolResource* const resource = find_tool_resource(tool.resource().id());
    if (resource == nullptr || resource->variable.empty()) continue;
    const std::size_t equals = resource->variable.find('=');
    variables.emplace(resource->variable.substr(0, equals), resource->variable.substr(equals + 1));
  }
  for (const auto& [name, value] : facts.spec.create_spec.envs()) variables[name] = value;
  // A caller cannot set these two: the spec refuses their names.
  variables["HOST_UID"] = std::to_string(facts.created_with.host_uid());
  variables["HOST_GID"] = std::to_string(facts.created_with.host_gid());
  std::vector<std::string> lines;
  lines.reserve(variables.size());
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

// Loopback only: on any other address the whole local network would reach the sandbox.
std::vector<PublishedPort> published_ports(const SandboxFacts& facts) {
  std::vector<PublishedPort> ports;
  for (const v1::PortMapping& port : facts.spec.create_spec.ports()) {
    ports.push_back({.container_port = std::to_string(port.container_port()) + "/" +
                                       std::string(protocol_name(port.protocol())),
                     .host_address = std::string(kPublishAddress),
                     .host_port = std::to_string(port.host_port())});
  }
  return ports;
}

// Those of current engines, which an older one may not have, and files of the host's memory that
// container root could read. What the kernel does not have is ignored.
std::vector<std::string> masked_paths() {
  std::vector<std::string> paths{
      "/proc/acpi",         "/proc/asound",     "/proc/interrupts",
      "/proc/kcore",        "/proc/keys",       "/proc/latency_stats",
      "/proc/sched_debug",  "/proc/scsi",       "/proc/timer_list",
      "/proc/timer_stats",  "/sys/firmware",    "/sys/devices/virtual/powercap",
      "/proc/kpagecgroup",  "/proc/kpagecount", "/proc/kpageflags",
      "/proc/pagetypeinfo", "/proc/slabinfo",   "/proc/vmallocinfo"};
  for (long cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_CONF); ++cpu) {
    paths.push_back("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/thermal_throttle");
  }
  return paths;
}

}  // namespace

// The gateway is explicit because engines up to Docker 26 do not report one that they chose.
NetworkSpec network_settings(std::string_view instance_id, const SandboxFacts& facts) {
  const auto subnet = parse_ipv4_network(facts.subnet.value());
  return {.name = network_name(facts.sandbox_id),
          .labels = network_labels(instance_id, facts.sandbox_id, user_labels(facts)),
          .bridge_name = bridge_name(instance_id, facts.sandbox_id),
          .subnet = *facts.subnet,
          .gateway = subnet ? gateway_of(*subnet).text() : ""};
}

ContainerSpec primary_settings(std::string_view instance_id, const SandboxFacts& facts,
                               const Attachments& attachments, const Hardening& hardening) {
  const SandboxSpec& spec = facts.spec;
  ContainerSpec primary{.name = primary_container_name(facts.sandbox_id),
                        .image = spec.create_spec.image()};
  primary.labels = primary_labels(instance_id, facts.sandbox_id, user_labels(facts));

  // The guest is the container's first program; it starts the image's ENTRYPOINT and the caller's
  // command itself, as the image's USER, once the isolation is verified.
  primary.entrypoint = {guestwire::kProgramInside};
  primary.command = std::vector<std::string>{};
  primary.user = "0:0";
  primary.working_dir = guestwire::kWorkspace;
  primary.env = environment(facts);
  // An image's own check would run as root before the guest lets anything run.
  primary.has_health_check = false;
  primary.stop_signal = "SIGTERM";
  for (const auto& [source, target, read_only] : attachments) {
    primary.mounts.push_back({.source = source, .target = target, .is_writable = !read_only});
  }

  primary.network = network_name(facts.sandbox_id);
  primary.ports = published_ports(facts);
  primary.dns = {facts.created_with.dns().begin(), facts.created_with.dns().end()};
  primary.extra_hosts = {"host.docker.internal:0.0.0.0", "gateway.docker.internal:0.0.0.0"};
  primary.sysctls = {{"net.ipv6.conf.all.disable_ipv6", "1"}};
  primary.ipc_mode = "private";
  primary.masked_paths = masked_paths();

  // Enough for sudo, apt, dpkg and useradd, and no more.
  primary.capabilities_dropped = {"ALL"};
  primary.capabilities_added = {"CHOWN",  "DAC_OVERRIDE", "FOWNER", "FSETID",
                                "SETUID", "SETGID",       "KILL",   "SYS_CHROOT"};
  primary.seccomp_profile = hardening.seccomp_profile;
  primary.pids_limit = kPidsLimit;
  primary.ulimits = {
      {.name = "core", .soft = 0, .hard = 0},
      {.name = "nofile", .soft = hardening.descriptor_limit, .hard = hardening.descriptor_limit}};
  primary.log_driver = "local";
  primary.log_options = {{"max-size", "10m"}, {"max-file", "3"}};
  if (spec.cpu_limit) primary.nano_cpus = spec.cpu_limit->millicores() * 1'000'000;
  if (spec.disk_limit) primary.disk_bytes = spec.disk_limit->bytes();
  primary.has_all_gpus = !spec.create_spec.gpus().empty();
  if (spec.memory_limit) primary.memory_bytes = spec.memory_limit->bytes();
  return primary;
}

}  // namespace agbox
