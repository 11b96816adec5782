// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/container_settings.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "guestwire/place.h"
#include "model/network/sandbox_subnet.h"
#include "model/object_names.h"
#include "model/spec/builtin_tools.h"
#include "model/spec/ports.h"

namespace agbox {
namespace {

// Processes that never sleep leave the guest, which has to stop them, one share of the CPUs in so
// many.
std::int64_t pids_limit() {
  constexpr std::int64_t per_cpu = 1024;
  return std::clamp<std::int64_t>(per_cpu * ::sysconf(_SC_NPROCESSORS_ONLN), 2048, 4096);
}

Labels user_labels(const SandboxFacts& facts) {
  const auto& labels = facts.spec.create_spec.labels();
  return {labels.begin(), labels.end()};
}

using Variables = std::map<std::string, std::string>;

std::vector<std::string> lines_of(const Variables& variables) {
  std::vector<std::string> lines;
  lines.reserve(variables.size());
  for (const auto& [name, value] : variables) lines.push_back(name + "=" + value);
  return lines;
}

std::vector<std::string> gpu_groups_of(const SandboxFacts& facts) {
  std::vector<std::string> groups;
  for (const std::uint32_t gid : facts.created_with.gpu_gids()) {
    groups.push_back(std::to_string(gid));
  }
  return groups;
}

std::vector<std::string> environment(const SandboxFacts& facts) {
  Variables variables;
  for (const auto& tool : facts.created_with.tools()) {
    const ToolResource* const resource = find_tool_resource(tool.resource().id());
    if (resource == nullptr || resource->variable.empty()) continue;
    const std::size_t equals = resource->variable.find('=');
    variables.emplace(resource->variable.substr(0, equals), resource->variable.substr(equals + 1));
  }
  for (const auto& [name, value] : facts.spec.create_spec.envs()) variables[name] = value;
  // A caller cannot set these: the spec refuses their names.
  variables["HOST_UID"] = std::to_string(facts.created_with.host_uid());
  variables["HOST_GID"] = std::to_string(facts.created_with.host_gid());
  std::string groups;
  for (const std::string& gid : gpu_groups_of(facts)) groups += (groups.empty() ? "" : ",") + gid;
  // For entrypoints of images that set up a user by themselves.
  if (!groups.empty()) variables["AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS"] = groups;
  return lines_of(variables);
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

// What every container of a sandbox has, whatever runs in it.
ContainerSpec hardened(const std::string& sandbox_id, const Hardening& hardening) {
  ContainerSpec spec;
  spec.network = network_name(sandbox_id);
  spec.extra_hosts = {"host.docker.internal:0.0.0.0", "gateway.docker.internal:0.0.0.0"};
  spec.sysctls = {{"net.ipv6.conf.all.disable_ipv6", "1"}};
  spec.ipc_mode = "private";
  spec.masked_paths = masked_paths();

  // Enough for sudo, apt, dpkg and useradd, and for services that begin as root and give that up.
  spec.capabilities_dropped = {"ALL"};
  spec.capabilities_added = {"CHOWN",  "DAC_OVERRIDE", "FOWNER", "FSETID",
                             "SETUID", "SETGID",       "KILL",   "SYS_CHROOT"};
  spec.seccomp_profile = hardening.seccomp_profile;
  spec.pids_limit = pids_limit();
  spec.ulimits = {
      {.name = "core", .soft = 0, .hard = 0},
      {.name = "nofile", .soft = hardening.descriptor_limit, .hard = hardening.descriptor_limit}};
  spec.log_driver = "local";
  spec.log_options = {{"max-size", "10m"}, {"max-file", "3"}};
  return spec;
}

void set_limits(ContainerSpec& spec, const std::optional<CpuLimit>& cpu,
                const std::optional<ByteLimit>& memory, const std::optional<ByteLimit>& disk) {
  if (cpu) spec.nano_cpus = cpu->millicores() * 1'000'000;
  if (memory) spec.memory_bytes = memory->bytes();
  if (disk) spec.disk_bytes = disk->bytes();
}

void set_mounts(ContainerSpec& spec, const Attachments& attachments) {
  for (const auto& [source, target, read_only] : attachments) {
    spec.mounts.push_back({.source = source, .target = target, .is_writable = !read_only});
  }
}

// The engine counts nanoseconds in 64 bits, which hold 292 years.
std::chrono::nanoseconds to_nanoseconds(const google::protobuf::Duration& duration) {
  constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 365 * 100);
  if (duration.seconds() >= std::chrono::floor<std::chrono::seconds>(longest).count()) {
    return longest;
  }
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
}

HealthCheck health_check(const v1::HealthcheckConfig& config) {
  return {.test = {config.test().begin(), config.test().end()},
          .interval = to_nanoseconds(config.interval()),
          .timeout = to_nanoseconds(config.timeout()),
          .start_period = to_nanoseconds(config.start_period()),
          .start_interval = to_nanoseconds(config.start_interval()),
          .retries = config.retries()};
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
  ContainerSpec primary = hardened(facts.sandbox_id, hardening);
  primary.name = primary_container_name(facts.sandbox_id);
  primary.image = spec.create_spec.image();
  primary.labels = primary_labels(instance_id, facts.sandbox_id, user_labels(facts));

  // The guest is the container's first program; it starts the image's ENTRYPOINT and the caller's
  // command itself, as the image's USER, once the isolation is verified.
  primary.entrypoint = {guestwire::kProgramInside};
  primary.command = std::vector<std::string>{};
  primary.user = "0:0";
  primary.working_dir = guestwire::kWorkspace;
  primary.env = environment(facts);
  // An image's own check would run as root before the guest lets anything run.
  primary.health_check = HealthCheck{.test = {"NONE"}};
  primary.stop_signal = "SIGTERM";
  set_mounts(primary, attachments);
  primary.ports = published_ports(facts);
  primary.dns = {facts.created_with.dns().begin(), facts.created_with.dns().end()};
  set_limits(primary, spec.cpu_limit, spec.memory_limit, spec.disk_limit);
  primary.has_all_gpus = !spec.create_spec.gpus().empty();
  primary.groups = gpu_groups_of(facts);
  return primary;
}

Result<ContainerSpec> companion_settings(std::string_view instance_id, const CompanionFacts& facts,
                                         const Attachments& attachments,
                                         const Hardening& hardening) {
  const v1::CompanionContainerSpec& spec = facts.spec;
  AGBOX_TRY(cpu, parse_limit<CpuLimit>("cpu_limit", "cpu_limit", spec.cpu_limit()));
  AGBOX_TRY(memory, parse_limit<ByteLimit>("memory_limit", "memory_limit", spec.memory_limit()));
  AGBOX_TRY(disk, parse_limit<ByteLimit>("disk_limit", "disk_limit", spec.disk_limit()));

  ContainerSpec companion = hardened(facts.sandbox_id, hardening);
  companion.name = companion_container_name(facts.sandbox_id, facts.name());
  companion.image = spec.image();
  companion.labels =
      companion_labels(instance_id, facts.sandbox_id, facts.name(), facts.sandbox_labels);
  if (!spec.command().empty()) {
    companion.command.emplace(spec.command().begin(), spec.command().end());
  }
  companion.env = lines_of({spec.envs().begin(), spec.envs().end()});
  if (spec.has_healthcheck()) companion.health_check = health_check(spec.healthcheck());
  // Its programs are no init, and a service that ignores SIGTERM as process 1 would take the whole
  // grace period to stop.
  companion.has_init = true;
  set_mounts(companion, attachments);
  companion.network_aliases = {facts.name()};
  companion.dns = facts.dns;
  set_limits(companion, cpu, memory, disk);
  return companion;
}

}  // namespace agbox
