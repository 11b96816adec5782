// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/container_spec.h"

#include <boost/json.hpp>

namespace agbox {
namespace {

namespace json = boost::json;

constexpr ApiVersion kAlwaysChecksDuplicates{1, 44};
constexpr ApiVersion kHasStartInterval{1, 44};

json::array array_of(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

json::object object_of(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [key, value] : texts) object[key] = value;
  return object;
}

json::array to_array(const std::vector<BindMount>& mounts) {
  json::array all;
  for (const BindMount& mount : mounts) {
    // Mounts, not Binds: those create a missing source as root.
    // Not recursive: what is mounted below the source, now or later, was not asked for, and would
    // be writable even if the mount is not.
    all.push_back({{"Type", "bind"},
                   {"Source", mount.source},
                   {"Target", mount.target},
                   {"ReadOnly", !mount.is_writable},
                   {"BindOptions", {{"NonRecursive", true}}}});
  }
  return all;
}

// By port of the container; several ports of the host may lead to one.
json::object port_bindings(const std::vector<PublishedPort>& ports) {
  json::object all;
  for (const PublishedPort& port : ports) {
    json::value& bindings = all[port.container_port];
    if (!bindings.is_array()) bindings.emplace_array();
    bindings.as_array().push_back({{"HostIp", port.host_address}, {"HostPort", port.host_port}});
  }
  return all;
}

json::object to_object(const HealthCheck& check, ApiVersion api) {
  json::object all{{"Test", array_of(check.test)}};
  const auto put = [&all](const char* key, std::chrono::nanoseconds duration) {
    if (duration.count() > 0) all[key] = duration.count();
  };
  put("Interval", check.interval);
  put("Timeout", check.timeout);
  put("StartPeriod", check.start_period);
  if (api >= kHasStartInterval) put("StartInterval", check.start_interval);
  if (check.retries > 0) all["Retries"] = check.retries;
  return all;
}

json::object host_config(const ContainerSpec& spec) {
  json::object host{{"NetworkMode", spec.network.empty() ? "none" : spec.network},
                    {"Privileged", false},
                    {"PublishAllPorts", false},
                    {"PortBindings", port_bindings(spec.ports)},
                    {"RestartPolicy", {{"Name", "no"}}},
                    {"Init", spec.has_init},
                    {"Mounts", to_array(spec.mounts)},
                    {"CapDrop", array_of(spec.capabilities_dropped)},
                    {"CapAdd", array_of(spec.capabilities_added)},
                    {"Dns", array_of(spec.dns)},
                    {"ExtraHosts", array_of(spec.extra_hosts)},
                    {"Sysctls", object_of(spec.sysctls)}};
  if (!spec.seccomp_profile.empty()) {
    host["SecurityOpt"] = json::array{"seccomp=" + spec.seccomp_profile};
  }
  if (!spec.ipc_mode.empty()) host["IpcMode"] = spec.ipc_mode;
  if (!spec.masked_paths.empty()) host["MaskedPaths"] = array_of(spec.masked_paths);
  if (spec.nano_cpus) host["NanoCpus"] = *spec.nano_cpus;
  if (spec.memory_bytes) host["Memory"] = *spec.memory_bytes;
  if (spec.pids_limit) host["PidsLimit"] = *spec.pids_limit;
  if (spec.disk_bytes) {
    host["StorageOpt"] = json::object{{"size", std::to_string(*spec.disk_bytes)}};
  }
  if (spec.has_all_gpus) {
    json::array gpu{"gpu"};
    json::array any_of;  // an inner list is "all of these"; braces would merge the two
    any_of.push_back(std::move(gpu));
    json::array requests;
    requests.push_back({{"Driver", "nvidia"}, {"Count", -1}, {"Capabilities", std::move(any_of)}});
    host["DeviceRequests"] = std::move(requests);
  }
  if (!spec.groups.empty()) host["GroupAdd"] = array_of(spec.groups);
  json::array ulimits;
  for (const ContainerUlimit& limit : spec.ulimits) {
    ulimits.push_back({{"Name", limit.name}, {"Soft", limit.soft}, {"Hard", limit.hard}});
  }
  host["Ulimits"] = std::move(ulimits);
  if (!spec.log_driver.empty()) {
    host["LogConfig"] =
        json::object{{"Type", spec.log_driver}, {"Config", object_of(spec.log_options)}};
  }
  return host;
}

}  // namespace

std::string to_json(const ContainerSpec& spec, ApiVersion api) {
  json::object body{{"Image", spec.image},
                    {"Env", array_of(spec.env)},
                    {"Labels", object_of(spec.labels)},
                    {"HostConfig", host_config(spec)}};
  if (!spec.ports.empty()) {
    json::object exposed;
    for (const PublishedPort& port : spec.ports) exposed[port.container_port] = json::object();
    body["ExposedPorts"] = std::move(exposed);
  }
  if (spec.entrypoint) body["Entrypoint"] = array_of(*spec.entrypoint);
  if (spec.command) body["Cmd"] = array_of(*spec.command);
  if (!spec.user.empty()) body["User"] = spec.user;
  if (!spec.working_dir.empty()) body["WorkingDir"] = spec.working_dir;
  if (!spec.stop_signal.empty()) body["StopSignal"] = spec.stop_signal;
  if (spec.health_check) body["Healthcheck"] = to_object(*spec.health_check, api);
  if (!spec.network.empty()) {
    json::object endpoint;
    if (!spec.network_aliases.empty()) endpoint["Aliases"] = array_of(spec.network_aliases);
    body["NetworkingConfig"] =
        json::object{{"EndpointsConfig", json::object{{spec.network, std::move(endpoint)}}}};
  }
  return json::serialize(body);
}

std::string to_json(const NetworkSpec& spec, ApiVersion api) {
  json::object body{{"Name", spec.name},        {"Driver", "bridge"},
                    {"EnableIPv6", false},      {"Internal", false},
                    {"Attachable", false},      {"Labels", object_of(spec.labels)},
                    {"Options", json::object()}};
  if (api < kAlwaysChecksDuplicates) body["CheckDuplicate"] = true;
  if (!spec.bridge_name.empty()) {
    body["Options"] = json::object{{"com.docker.network.bridge.name", spec.bridge_name}};
  }
  if (!spec.subnet.empty()) {
    json::object pool{{"Subnet", spec.subnet}};
    if (!spec.gateway.empty()) pool["Gateway"] = spec.gateway;
    json::array pools;
    pools.push_back(std::move(pool));
    body["IPAM"] = json::object{{"Driver", "default"}, {"Config", std::move(pools)}};
  }
  return json::serialize(body);
}

}  // namespace agbox
