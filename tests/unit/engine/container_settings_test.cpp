// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/container_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "model/object_names.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsSupersetOf;

constexpr const char* kInstance = "0a1b2c3d-0000-4000-8000-000000000000";

SandboxFacts facts(v1::CreateSpec spec) {
  spec.set_image("busybox");
  SandboxFacts made{.sandbox_id = "s-01",
                    .spec = parse_create_spec(std::move(spec)).value(),
                    .created_with = {},
                    .subnet = "10.99.0.16/28",
                    .containers = {}};
  made.created_with.set_host_uid(1000);
  made.created_with.set_host_gid(100);
  return made;
}

ContainerSpec settings(v1::CreateSpec spec) {
  const Attachments attachments{{.source = "/g", .target = "/guest"}};
  return primary_settings(kInstance, facts(std::move(spec)), attachments,
                          {.seccomp_profile = "{}", .descriptor_limit = 5000});
}

TEST(ContainerSettings, LimitsAreTheCallersInTheEnginesUnits) {
  v1::CreateSpec spec;
  spec.set_cpu_limit("1.5");
  spec.set_memory_limit("512m");
  const ContainerSpec made = settings(spec);
  EXPECT_EQ(made.nano_cpus, 1'500'000'000);
  EXPECT_EQ(made.memory_bytes, 512 << 20);
  spec.set_disk_limit("10g");
  spec.set_gpus("all");
  EXPECT_EQ(settings(spec).disk_bytes, std::int64_t{10} << 30);
  EXPECT_TRUE(settings(spec).has_all_gpus);
  EXPECT_FALSE(settings({}).disk_bytes.has_value());
  EXPECT_FALSE(settings({}).has_all_gpus);
  EXPECT_FALSE(settings({}).nano_cpus.has_value());
  EXPECT_FALSE(settings({}).memory_bytes.has_value());
}

TEST(ContainerSettings, PortsArePublishedOnLoopbackOnly) {
  v1::CreateSpec spec;
  v1::PortMapping& port = *spec.add_ports();
  port.set_container_port(53);
  port.set_host_port(5353);
  port.set_protocol(v1::PORT_PROTOCOL_UDP);
  EXPECT_THAT(settings(spec).ports,
              ElementsAre(AllOf(Field(&PublishedPort::container_port, "53/udp"),
                                Field(&PublishedPort::host_address, "127.0.0.1"),
                                Field(&PublishedPort::host_port, "5353"))));
}

TEST(ContainerSettings, NoProcessRaisesItsLimits) {
  for (const ContainerUlimit& limit : settings({}).ulimits) EXPECT_EQ(limit.soft, limit.hard);
  EXPECT_THAT(settings({}).ulimits, ElementsAre(Field(&ContainerUlimit::name, "core"),
                                                AllOf(Field(&ContainerUlimit::name, "nofile"),
                                                      Field(&ContainerUlimit::hard, 5000))));
}

TEST(ContainerSettings, MaskTheTemperaturesOfEveryCpu) {
  const std::string cpu = "/sys/devices/system/cpu/cpu";
  const long last = ::sysconf(_SC_NPROCESSORS_CONF) - 1;
  EXPECT_THAT(
      settings({}).masked_paths,
      IsSupersetOf({cpu + "0/thermal_throttle", cpu + std::to_string(last) + "/thermal_throttle"}));
}

TEST(ContainerSettings, TheCallersEnvironmentComesWithTheHostsUser) {
  v1::CreateSpec spec;
  (*spec.mutable_envs())["A"] = "1=2";
  (*spec.mutable_envs())["Z"] = "";
  EXPECT_THAT(settings(spec).env, ElementsAre("A=1=2", "HOST_GID=100", "HOST_UID=1000", "Z="));
}

TEST(ContainerSettings, ProgramsAreToldWhereTheResourcesOfToolsAre) {
  SandboxFacts with_tools = facts({});
  for (const char* id : {"ssh-agent", "npm", "of a later version"}) {
    with_tools.created_with.add_tools()->mutable_resource()->set_id(id);
  }
  EXPECT_THAT(primary_settings(kInstance, with_tools, {}, {}).env,
              ElementsAre("HOST_GID=100", "HOST_UID=1000", "SSH_AUTH_SOCK=/ssh-agent"));
}

TEST(ContainerSettings, ACallersLabelsNeverReplaceOurs) {
  v1::CreateSpec spec;
  (*spec.mutable_labels())["team"] = "a";
  const ContainerSpec made = settings(spec);
  for (const auto& [key, value] : primary_labels(kInstance, "s-01", {{"team", "a"}})) {
    EXPECT_THAT(made.labels, Contains(std::pair(key, value)));
  }
}

TEST(ContainerSettings, TheNetworkIsTheSandboxsOwn) {
  const NetworkSpec network = network_settings(kInstance, facts({}));
  EXPECT_EQ(network.subnet, "10.99.0.16/28");
  EXPECT_EQ(network.gateway, "10.99.0.17");
  EXPECT_EQ(network.bridge_name, bridge_name(kInstance, "s-01"));
  EXPECT_EQ(settings({}).network, network.name);
  EXPECT_EQ(network.bridge_name.size(), 15U);
}

}  // namespace
}  // namespace agbox
