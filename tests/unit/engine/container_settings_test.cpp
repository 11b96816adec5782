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
using testing::IsEmpty;
using testing::IsSupersetOf;

using namespace std::chrono_literals;

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

TEST(ContainerSettings, TheGroupsOfGpusAreThereForTheEngineAndForEntrypoints) {
  SandboxFacts with_gpus = facts({});
  with_gpus.created_with.add_gpu_gids(44);
  with_gpus.created_with.add_gpu_gids(109);
  const ContainerSpec made = primary_settings(kInstance, with_gpus, {}, {.seccomp_profile = "{}"});
  EXPECT_THAT(made.groups, ElementsAre("44", "109"));
  EXPECT_THAT(made.env, Contains("AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS=44,109"));
  EXPECT_THAT(settings({}).groups, IsEmpty());
  EXPECT_THAT(settings({}).env,
              Not(Contains(testing::StartsWith("AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS"))));
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

CompanionFacts companion(v1::CompanionContainerSpec spec) {
  spec.set_name("db");
  spec.set_image("postgres");
  return {.sandbox_id = "s-01",
          .role = v1::COMPANION_ROLE_REQUIRED_SERVICE,
          .spec = std::move(spec),
          .sandbox_labels = {{"team", "a"}},
          .dns = {"192.0.2.53"},
          .engine_id = {},
          .container = {}};
}

ContainerSpec companion_spec(v1::CompanionContainerSpec spec) {
  return companion_settings(kInstance, companion(std::move(spec)),
                            {{.source = "/guests/1", .target = "/.agbox-guest"}},
                            {.seccomp_profile = "{}", .descriptor_limit = 5000})
      .value();
}

TEST(ContainerSettings, ACompanionIsHardenedLikeThePrimary) {
  v1::CreateSpec labelled;
  (*labelled.mutable_labels())["team"] = "a";
  const ContainerSpec primary = settings(labelled);
  const ContainerSpec made = companion_spec({});
  EXPECT_EQ(made.network, primary.network);
  EXPECT_EQ(made.extra_hosts, primary.extra_hosts);
  EXPECT_EQ(made.sysctls, primary.sysctls);
  EXPECT_EQ(made.ipc_mode, "private");
  EXPECT_EQ(made.masked_paths, primary.masked_paths);
  EXPECT_EQ(made.capabilities_dropped, primary.capabilities_dropped);
  EXPECT_EQ(made.capabilities_added, primary.capabilities_added);
  EXPECT_EQ(made.seccomp_profile, "{}");
  EXPECT_EQ(made.pids_limit, primary.pids_limit);
  EXPECT_EQ(made.ulimits.size(), primary.ulimits.size());
  EXPECT_EQ(made.log_driver, primary.log_driver);
  EXPECT_EQ(made.log_options, primary.log_options);
}

TEST(ContainerSettings, ACompanionHasItsImagesProgramAndOfTheHostOnlyTheGuest) {
  const ContainerSpec made = companion_spec({});
  EXPECT_EQ(made.name, "agbox-cc-s-01-db");
  EXPECT_EQ(made.image, "postgres");
  EXPECT_EQ(made.labels, companion_labels(kInstance, "s-01", "db", {{"team", "a"}}));
  EXPECT_FALSE(made.entrypoint.has_value());
  EXPECT_FALSE(made.command.has_value());
  EXPECT_EQ(made.user, "");
  EXPECT_EQ(made.working_dir, "");
  EXPECT_EQ(made.stop_signal, "");
  EXPECT_TRUE(made.env.empty());
  EXPECT_FALSE(made.health_check.has_value()) << "the image's";
  ASSERT_EQ(made.mounts.size(), 1U);
  EXPECT_EQ(made.mounts[0].target, "/.agbox-guest");
  EXPECT_FALSE(made.mounts[0].is_writable);
  EXPECT_TRUE(made.ports.empty());
  EXPECT_TRUE(made.has_init);
  EXPECT_FALSE(made.has_all_gpus);
  EXPECT_THAT(made.network_aliases, ElementsAre("db"));
  EXPECT_THAT(made.dns, ElementsAre("192.0.2.53"));
  EXPECT_FALSE(made.nano_cpus || made.memory_bytes || made.disk_bytes);
}

TEST(ContainerSettings, ACompanionHasWhatItsSpecSays) {
  v1::CompanionContainerSpec spec;
  spec.add_command("postgres");
  spec.add_command("-c");
  (*spec.mutable_envs())["Z"] = "1";
  (*spec.mutable_envs())["A"] = "x=y";
  spec.set_cpu_limit("0.5");
  spec.set_memory_limit("512m");
  spec.set_disk_limit("1g");
  v1::HealthcheckConfig& check = *spec.mutable_healthcheck();
  check.add_test("CMD");
  check.add_test("pg_isready");
  check.mutable_interval()->set_seconds(3);
  check.mutable_timeout()->set_nanos(500'000'000);
  check.mutable_start_period()->set_seconds(315'576'000'000);
  check.mutable_start_interval()->set_seconds(1);
  check.set_retries(9);
  const ContainerSpec made = companion_spec(spec);
  EXPECT_THAT(made.command.value(), ElementsAre("postgres", "-c"));
  EXPECT_THAT(made.env, ElementsAre("A=x=y", "Z=1"));
  EXPECT_EQ(made.nano_cpus, 500'000'000);
  EXPECT_EQ(made.memory_bytes, 512 << 20);
  EXPECT_EQ(made.disk_bytes, 1 << 30);
  const HealthCheck health = made.health_check.value();
  EXPECT_THAT(health.test, ElementsAre("CMD", "pg_isready"));
  EXPECT_EQ(health.interval, 3s);
  EXPECT_EQ(health.timeout, 500ms);
  EXPECT_GE(health.start_period, 24h * 365) << "as much as the engine can count";
  EXPECT_EQ(health.start_interval, 1s);
  EXPECT_EQ(health.retries, 9);
}

TEST(ContainerSettings, ALimitThatCannotBeUnderstoodIsNamed) {
  v1::CompanionContainerSpec spec;
  spec.set_memory_limit("much");
  const auto refused = companion_settings(kInstance, companion(spec), {}, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("memory_limit"));
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
