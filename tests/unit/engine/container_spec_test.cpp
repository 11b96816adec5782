// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/container_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace agbox {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

json::value parsed(const std::string& text) {
  return json::parse(text);
}

TEST(ContainerSpec, TheSmallestAsksForNothingBeyondItself) {
  EXPECT_EQ(parsed(to_json(ContainerSpec{.name = "c", .image = "busybox"}, kOldestApi)), parsed(R"({
    "Image": "busybox", "Env": [], "Labels": {}, "ExposedPorts": {},
    "HostConfig": {
      "NetworkMode": "none", "Privileged": false, "PublishAllPorts": false,
      "RestartPolicy": {"Name": "no"}, "Init": false, "ReadonlyRootfs": false, "Mounts": [],
      "CapDrop": [], "CapAdd": [], "GroupAdd": [], "Dns": [], "ExtraHosts": [],
      "PortBindings": {}, "Sysctls": {}, "Tmpfs": {}, "SecurityOpt": [], "Ulimits": [],
      "DeviceRequests": []}
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
      .host_name = "s1",
      .env = {"HOST_UID=1000", "X=a=b \"quoted\""},
      .health = HealthProbe{.test = {"CMD", "true"},
                            .interval = 2s,
                            .timeout = 1s,
                            .start_period = 5s,
                            .start_interval = 100ms,
                            .retries = 4},
      .stop_signal = "SIGTERM",
      .mounts = {{.source = "/home/u/p", .target = "/workspace", .is_writable = true},
                 {.source = "/opt/x", .target = "/opt/x"}},
      .tmpfs = {{"/scratch", "size=64m,mode=1777"}},
      .network = "agbox-net-s1",
      .network_aliases = {"db"},
      .ipv4_address = "10.201.0.3",
      .dns = {"192.0.2.53"},
      .extra_hosts = {"host.docker.internal:0.0.0.0"},
      .ports = {{.container_port = 80, .host_port = 8080},
                {.container_port = 80, .host_port = 8081},
                {.container_port = 53, .host_port = 5353, .protocol = "udp"}},
      .capabilities_dropped = {"ALL"},
      .capabilities_added = {"CHOWN", "KILL"},
      .seccomp_profile = R"({"defaultAction":"SCMP_ACT_ERRNO"})",
      .security_options = {"apparmor=docker-default"},
      .groups_added = {"44"},
      .sysctls = {{"net.ipv6.conf.all.disable_ipv6", "1"}},
      .ipc_mode = "private",
      .has_readonly_root = true,
      .has_engine_init = true,
      .nano_cpus = 1'500'000'000,
      .memory_bytes = std::int64_t{4} << 30,
      .disk_bytes = std::int64_t{10} << 30,
      .pids_limit = 4096,
      .ulimits = {{.name = "core", .soft = 0, .hard = 0}},
      .devices = {{.driver = "nvidia", .count = -1, .capabilities = {{"gpu"}}}},
      .log_driver = "local",
      .log_options = {{"max-size", "10m"}, {"max-file", "3"}}};
  EXPECT_EQ(parsed(to_json(spec, ApiVersion{1, 44})), parsed(R"({
    "Image": "debian:12", "Entrypoint": ["/.agbox-guest"], "Cmd": ["serve", "--x"],
    "User": "0:0", "WorkingDir": "/workspace", "Hostname": "s1", "StopSignal": "SIGTERM",
    "Env": ["HOST_UID=1000", "X=a=b \"quoted\""], "Labels": {"a": "1", "b.c": ""},
    "ExposedPorts": {"80/tcp": {}, "53/udp": {}},
    "Healthcheck": {"Test": ["CMD", "true"], "Interval": 2000000000, "Timeout": 1000000000,
                    "StartPeriod": 5000000000, "StartInterval": 100000000, "Retries": 4},
    "HostConfig": {
      "NetworkMode": "agbox-net-s1", "Privileged": false, "PublishAllPorts": false,
      "RestartPolicy": {"Name": "no"}, "Init": true, "ReadonlyRootfs": true,
      "Mounts": [
        {"Type": "bind", "Source": "/home/u/p", "Target": "/workspace", "ReadOnly": false},
        {"Type": "bind", "Source": "/opt/x", "Target": "/opt/x", "ReadOnly": true}],
      "CapDrop": ["ALL"], "CapAdd": ["CHOWN", "KILL"], "GroupAdd": ["44"],
      "Dns": ["192.0.2.53"], "ExtraHosts": ["host.docker.internal:0.0.0.0"],
      "PortBindings": {
        "80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"},
                   {"HostIp": "127.0.0.1", "HostPort": "8081"}],
        "53/udp": [{"HostIp": "127.0.0.1", "HostPort": "5353"}]},
      "Sysctls": {"net.ipv6.conf.all.disable_ipv6": "1"},
      "Tmpfs": {"/scratch": "size=64m,mode=1777"},
      "SecurityOpt": ["apparmor=docker-default",
                      "seccomp={\"defaultAction\":\"SCMP_ACT_ERRNO\"}"],
      "IpcMode": "private", "NanoCpus": 1500000000, "Memory": 4294967296, "PidsLimit": 4096,
      "StorageOpt": {"size": "10737418240"},
      "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
      "DeviceRequests": [{"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}],
      "LogConfig": {"Type": "local", "Config": {"max-file": "3", "max-size": "10m"}}},
    "NetworkingConfig": {"EndpointsConfig": {"agbox-net-s1": {
      "Aliases": ["db"], "IPAMConfig": {"IPv4Address": "10.201.0.3"}}}}
  })"));
}

TEST(ContainerSpec, AnEngineWithoutStartIntervalIsNotSentOne) {
  const ContainerSpec spec{.name = "c",
                           .image = "i",
                           .health = HealthProbe{.test = {"CMD", "true"}, .start_interval = 1s}};
  EXPECT_FALSE(to_json(spec, ApiVersion{1, 43}).contains("StartInterval"));
  EXPECT_TRUE(to_json(spec, ApiVersion{1, 44}).contains("StartInterval"));
}

TEST(ContainerSpec, AnEmptyCommandIsNotTheImagesCommand) {
  ContainerSpec spec{.name = "c", .image = "i"};
  EXPECT_FALSE(parsed(to_json(spec, kOldestApi)).as_object().contains("Cmd"));
  spec.command.emplace();
  EXPECT_EQ(parsed(to_json(spec, kOldestApi)).at("Cmd"), json::array());
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
