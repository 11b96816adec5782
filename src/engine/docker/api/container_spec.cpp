// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/container_spec.h"

#include <boost/json.hpp>

namespace agbox {
namespace {

namespace json = boost::json;

constexpr ApiVersion kHasStartInterval{1, 44};
constexpr ApiVersion kAlwaysChecksDuplicates{1, 44};

json::array array_of(const std::vector<std::string>& texts) {
  return json::array(texts.begin(), texts.end());
}

json::object object_of(const std::map<std::string, std::string>& texts) {
  json::object object;
  for (const auto& [key, value] : texts) object[key] = value;
  return object;
}

json::object to_object(const HealthProbe& probe, ApiVersion api) {
  json::object object{{"Test", array_of(probe.test)}};
  if (probe.interval) object["Interval"] = probe.interval->count();
  if (probe.timeout) object["Timeout"] = probe.timeout->count();
  if (probe.start_period) object["StartPeriod"] = probe.start_period->count();
  // Older engines accept but ignore it, so it is not sent.
  if (probe.start_interval && api >= kHasStartInterval) {
    object["StartInterval"] = probe.start_interval->count();
  }
  if (probe.retries > 0) object["Retries"] = probe.retries;
  return object;
}

json::array to_array(const std::vector<BindMount>& mounts) {
  json::array all;
  for (const BindMount& mount : mounts) {
    // Mounts, not Binds: those create a missing source as root.
    all.push_back({{"Type", "bind"},
                   {"Source", mount.source},
                   {"Target", mount.target},
                   {"ReadOnly", !mount.is_writable}});
  }
  return all;
}

std::string key_of(const PortBinding& port) {
  return std::to_string(port.container_port) + "/" + port.protocol;
}

json::object exposed_ports(const std::vector<PortBinding>& ports) {
  json::object all;
  for (const PortBinding& port : ports) all[key_of(port)] = json::object();
  return all;
}

json::object port_bindings(const std::vector<PortBinding>& ports) {
  json::object all;
  for (const PortBinding& port : ports) {
    json::value& bindings = all[key_of(port)];
    if (bindings.is_null()) bindings = json::array();
    bindings.as_array().push_back(
        {{"HostIp", "127.0.0.1"}, {"HostPort", std::to_string(port.host_port)}});
  }
  return all;
}

json::object host_config(const ContainerSpec& spec) {
  json::object host{{"NetworkMode", spec.network.empty() ? "none" : spec.network},
                    {"Privileged", false},
                    {"PublishAllPorts", false},
                    {"RestartPolicy", {{"Name", "no"}}},
                    {"Init", spec.has_engine_init},
                    {"ReadonlyRootfs", spec.has_readonly_root},
                    {"Mounts", to_array(spec.mounts)},
                    {"CapDrop", array_of(spec.capabilities_dropped)},
                    {"CapAdd", array_of(spec.capabilities_added)},
                    {"GroupAdd", array_of(spec.groups_added)},
                    {"Dns", array_of(spec.dns)},
                    {"ExtraHosts", array_of(spec.extra_hosts)},
                    {"PortBindings", port_bindings(spec.ports)},
                    {"Sysctls", object_of(spec.sysctls)},
                    {"Tmpfs", object_of(spec.tmpfs)}};
  json::array security = array_of(spec.security_options);
  if (!spec.seccomp_profile.empty()) security.emplace_back("seccomp=" + spec.seccomp_profile);
  host["SecurityOpt"] = std::move(security);
  if (!spec.ipc_mode.empty()) host["IpcMode"] = spec.ipc_mode;
  if (spec.nano_cpus) host["NanoCpus"] = *spec.nano_cpus;
  if (spec.memory_bytes) host["Memory"] = *spec.memory_bytes;
  if (spec.pids_limit) host["PidsLimit"] = *spec.pids_limit;
  if (spec.disk_bytes) {
    host["StorageOpt"] = json::object{{"size", std::to_string(*spec.disk_bytes)}};
  }
  json::array ulimits;
  for (const ContainerUlimit& limit : spec.ulimits) {
    ulimits.push_back({{"Name", limit.name}, {"Soft", limit.soft}, {"Hard", limit.hard}});
  }
  host["Ulimits"] = std::move(ulimits);
  json::array devices;
  for (const DeviceRequest& device : spec.devices) {
    json::array capabilities;
    for (const auto& together : device.capabilities) capabilities.push_back(array_of(together));
    devices.push_back({{"Driver", device.driver},
                       {"Count", device.count},
                       {"Capabilities", std::move(capabilities)}});
  }
  host["DeviceRequests"] = std::move(devices);
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
                    {"ExposedPorts", exposed_ports(spec.ports)},
                    {"HostConfig", host_config(spec)}};
  if (spec.entrypoint) body["Entrypoint"] = array_of(*spec.entrypoint);
  if (spec.command) body["Cmd"] = array_of(*spec.command);
  if (!spec.user.empty()) body["User"] = spec.user;
  if (!spec.working_dir.empty()) body["WorkingDir"] = spec.working_dir;
  if (!spec.host_name.empty()) body["Hostname"] = spec.host_name;
  if (!spec.stop_signal.empty()) body["StopSignal"] = spec.stop_signal;
  if (spec.health) body["Healthcheck"] = to_object(*spec.health, api);
  if (!spec.network.empty()) {
    json::object endpoint;
    if (!spec.network_aliases.empty()) endpoint["Aliases"] = array_of(spec.network_aliases);
    if (!spec.ipv4_address.empty()) {
      endpoint["IPAMConfig"] = json::object{{"IPv4Address", spec.ipv4_address}};
    }
    body["NetworkingConfig"] =
        json::object{{"EndpointsConfig", json::object{{spec.network, std::move(endpoint)}}}};
  }
  return json::serialize(body);
}

std::string to_json(const NetworkSpec& spec, ApiVersion api) {
  json::object body{{"Name", spec.name},        {"Driver", "bridge"},
                    {"EnableIPv6", false},      {"Internal", spec.is_internal},
                    {"Attachable", false},      {"Labels", object_of(spec.labels)},
                    {"Options", json::object()}};
  if (api < kAlwaysChecksDuplicates) body["CheckDuplicate"] = true;
  if (!spec.bridge_name.empty()) {
    body["Options"] = json::object{{"com.docker.network.bridge.name", spec.bridge_name}};
  }
  if (!spec.subnet.empty()) {
    json::object pool{{"Subnet", spec.subnet}};
    if (!spec.gateway.empty()) pool["Gateway"] = spec.gateway;
    body["IPAM"] =
        json::object{{"Driver", "default"}, {"Config", json::array{json::value(std::move(pool))}}};
  }
  return json::serialize(body);
}

}  // namespace agbox
