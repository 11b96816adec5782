// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/container_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace agbox {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

json::value parsed(const std::string& text) {
  return json::parse(text);
}

constexpr ApiVersion kBeforeStartInterval{1, 43};
constexpr ApiVersion kStartInterval{1, 44};

TEST(ContainerSpec, TheSmallestAsksForNothingBeyondItself) {
  EXPECT_EQ(parsed(to_json(ContainerSpec{.name = "c", .image = "busybox"}, kOldestApi)), parsed(R"({
    "Image": "busybox", "Env": [], "Labels": {},
    "HostConfig": {
      "NetworkMode": "none", "Privileged": false, "PublishAllPorts": false, "PortBindings": {},
      "RestartPolicy": {"Name": "no"}, "Init": false, "Mounts": [],
      "CapDrop": [], "CapAdd": [], "Dns": [], "ExtraHosts": [], "Sysctls": {}, "Ulimits": []}
  })"));
}

TEST(ContainerSpec, EveryFieldHasItsPlace) {
  const ContainerSpec spec{
      .name = "agbox-primary-s1",
      .image = "debian:12",
      .labels = {{"a", "1"}, {"b.c", ""}},
      .entrypoint = std::vector<std::string>{"/.agbox-guest"},
      .command = std::vector<std::string>{"serve", "--x"},
      .user = "0:0",
      .working_dir = "/workspace",
      .env = {"HOST_UID=1000", "X=a=b \"quoted\""},
      .health_check = HealthCheck{.test = {"NONE"}},
      .stop_signal = "SIGTERM",
      .has_init = true,
      .mounts = {{.source = "/home/u/p", .target = "/workspace", .is_writable = true},
                 {.source = "/opt/x", .target = "/opt/x"}},
      .network = "agbox-net-s1",
      .network_aliases = {"db"},
      .ports = {{.container_port = "80/tcp", .host_address = "127.0.0.1", .host_port = "8080"},
                {.container_port = "53/udp", .host_address = "127.0.0.1", .host_port = "53"},
                {.container_port = "80/tcp", .host_address = "127.0.0.1", .host_port = "8081"}},
      .dns = {"192.0.2.53"},
      .extra_hosts = {"host.docker.internal:0.0.0.0"},
      .capabilities_dropped = {"ALL"},
      .capabilities_added = {"CHOWN", "KILL"},
      .seccomp_profile = R"({"defaultAction":"SCMP_ACT_ERRNO"})",
      .sysctls = {{"net.ipv6.conf.all.disable_ipv6", "1"}},
      .ipc_mode = "private",
      .masked_paths = {"/proc/kcore"},
      .nano_cpus = 1'500'000'000,
      .memory_bytes = std::int64_t{4} << 30,
      .pids_limit = 2048,
      .disk_bytes = std::int64_t{10} << 30,
      .has_all_gpus = true,
      .groups = {"44", "109"},
      .ulimits = {{.name = "core", .soft = 0, .hard = 0}},
      .log_driver = "local",
      .log_options = {{"max-size", "10m"}, {"max-file", "3"}}};
  EXPECT_EQ(parsed(to_json(spec, kOldestApi)), parsed(R"({
    "Image": "debian:12", "Entrypoint": ["/.agbox-guest"], "Cmd": ["serve", "--x"],
    "User": "0:0", "WorkingDir": "/workspace", "StopSignal": "SIGTERM",
    "Env": ["HOST_UID=1000", "X=a=b \"quoted\""], "Labels": {"a": "1", "b.c": ""},
    "ExposedPorts": {"80/tcp": {}, "53/udp": {}},
    "Healthcheck": {"Test": ["NONE"]},
    "HostConfig": {
      "NetworkMode": "agbox-net-s1", "Privileged": false, "PublishAllPorts": false,
      "PortBindings": {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"},
                                  {"HostIp": "127.0.0.1", "HostPort": "8081"}],
                       "53/udp": [{"HostIp": "127.0.0.1", "HostPort": "53"}]},
      "RestartPolicy": {"Name": "no"}, "Init": true,
      "Mounts": [
        {"Type": "bind", "Source": "/home/u/p", "Target": "/workspace", "ReadOnly": false, "BindOptions": {"NonRecursive": true}},
        {"Type": "bind", "Source": "/opt/x", "Target": "/opt/x", "ReadOnly": true, "BindOptions": {"NonRecursive": true}}],
      "CapDrop": ["ALL"], "CapAdd": ["CHOWN", "KILL"],
      "Dns": ["192.0.2.53"], "ExtraHosts": ["host.docker.internal:0.0.0.0"],
      "Sysctls": {"net.ipv6.conf.all.disable_ipv6": "1"},
      "SecurityOpt": ["seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\"}"],
      "IpcMode": "private", "MaskedPaths": ["/proc/kcore"], "NanoCpus": 1500000000, "Memory": 4294967296, "PidsLimit": 2048, "StorageOpt": {"size": "10737418240"},
      "DeviceRequests": [{"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}],
      "GroupAdd": ["44", "109"],
      "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
      "LogConfig": {"Type": "local", "Config": {"max-file": "3", "max-size": "10m"}}},
    "NetworkingConfig": {"EndpointsConfig": {"agbox-net-s1": {"Aliases": ["db"]}}}
  })"));
}

TEST(ContainerSpec, AnEmptyCommandIsNotTheImagesCommand) {
  ContainerSpec spec{.name = "c", .image = "i"};
  EXPECT_FALSE(parsed(to_json(spec, kOldestApi)).as_object().contains("Cmd"));
  spec.command.emplace();
  EXPECT_EQ(parsed(to_json(spec, kOldestApi)).at("Cmd"), json::array());
}

TEST(ContainerSpec, AHealthCheckHasWhatIsSetAndTheApiKnows) {
  ContainerSpec spec{.name = "c", .image = "i"};
  spec.health_check = HealthCheck{.test = {"CMD-SHELL", "true"}};
  EXPECT_EQ(parsed(to_json(spec, kStartInterval)).at("Healthcheck"),
            parsed(R"({"Test": ["CMD-SHELL", "true"]})"));
  spec.health_check = HealthCheck{.test = {"CMD", "a", "b"},
                                  .interval = 1s,
                                  .timeout = 1500ms,
                                  .start_period = 2h,
                                  .start_interval = 1ms,
                                  .retries = 7};
  json::value all = parsed(R"({"Test": ["CMD", "a", "b"], "Interval": 1000000000,
    "Timeout": 1500000000, "StartPeriod": 7200000000000, "StartInterval": 1000000, "Retries": 7})");
  EXPECT_EQ(parsed(to_json(spec, kStartInterval)).at("Healthcheck"), all);
  all.as_object().erase("StartInterval");
  EXPECT_EQ(parsed(to_json(spec, kBeforeStartInterval)).at("Healthcheck"), all);
}

TEST(NetworkSpec, IsABridgeWithAnExplicitSubnetAndWithoutIpv6) {
  const NetworkSpec spec{.name = "agbox-net-s1",
                         .labels = {{"a", "1"}},
                         .bridge_name = "agbxaaaabbbbbbb",
                         .subnet = "10.201.0.16/28",
                         .gateway = "10.201.0.17"};
  EXPECT_EQ(parsed(to_json(spec, ApiVersion{1, 41})), parsed(R"({
    "Name": "agbox-net-s1", "Driver": "bridge", "EnableIPv6": false, "Internal": false,
    "Attachable": false, "CheckDuplicate": true, "Labels": {"a": "1"},
    "Options": {"com.docker.network.bridge.name": "agbxaaaabbbbbbb"},
    "IPAM": {"Driver": "default",
             "Config": [{"Subnet": "10.201.0.16/28", "Gateway": "10.201.0.17"}]}
  })"));
  EXPECT_FALSE(to_json(spec, ApiVersion{1, 44}).contains("CheckDuplicate"));
}

}  // namespace
}  // namespace agbox
