// SPDX-License-Identifier: Apache-2.0
// Every refusal of a request that its text alone justifies: existing clients compare messages and
// rely on their order.
#include <gtest/gtest.h>

#include <google/protobuf/text_format.h>

#include <string>

#include "model/spec/companions.h"
#include "model/spec/maxima.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {
namespace {

v1::CreateSpec spec_of(const std::string& text) {
  v1::CreateSpec message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("image: 'busybox' " + text, &message))
      << text;
  return message;
}

struct Refusal {
  std::string spec;
  std::string message;
};

void expect_refusals(const std::vector<Refusal>& rows) {
  for (const Refusal& row : rows) {
    const auto parsed = parse_create_spec(spec_of(row.spec));
    ASSERT_FALSE(parsed.has_value()) << row.spec;
    EXPECT_EQ(parsed.error().reason(), reason::kInvalidArgument) << row.spec;
    EXPECT_EQ(parsed.error().message(), row.message) << row.spec;
  }
}

std::string db(const std::string& rest) {
  return "companion_containers { name: 'db' image: 'db:1' " + rest + " }";
}

std::string mount(const std::string& source, const std::string& target) {
  return "mounts { source: '" + source + "' target: '" + target + "' }";
}

std::string copy(const std::string& source, const std::string& target) {
  return "copies { source: '" + source + "' target: '" + target + "' }";
}

TEST(SpecRefusals, OfTheSandboxItself) {
  expect_refusals({
      {"idle_ttl { seconds: -1 }", "idle_ttl must not be negative"},
      {"gpus: '1'", "gpus: unsupported value \"1\"; currently only empty or \"all\" are supported"},
      {"envs { key: 'AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS' }",
       "envs.AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS is reserved for internal runtime setup and must "
       "not be set by CreateSpec.Envs"},
      {"envs { key: 'HOST_GID' }",
       "envs.HOST_GID is reserved for internal runtime setup and must not be set by "
       "CreateSpec.Envs"},
      {"command: 'sh' command: ''", "command[1]: empty string entry is not allowed"},
      {"command: 'a\\0b'", "command[0]: contains a NUL byte"},
  });
}

TEST(SpecRefusals, OfMountsAndCopies) {
  for (const std::string word : {"mount", "copy"}) {
    const auto entry = [&](const std::string& source, const std::string& target) {
      return word == "mount" ? mount(source, target) : copy(source, target);
    };
    const std::string reserved = " is part of every sandbox; choose another path";
    const std::string too_long = "/" + std::string(4095, 'x');
    expect_refusals({
        {entry("", ""), word + " source is required"},
        {entry("~bob/x", "~amy"), "~username syntax is not supported: ~bob/x"},
        {entry("x", "~amy"), "~username syntax is not supported: ~amy"},
        {entry("x", ""), word + " source must be absolute: x"},
        {entry("./x", "/t"), word + " source must be absolute: ./x"},
        {entry("/x", ""), word + " target is required"},
        {entry("~", "t"), word + " target must be absolute: t"},
        // Beyond the contract.
        {entry("/x/../y", "/t"), word + " source must not contain \"..\": /x/../y"},
        {entry("~/..", "/t"), word + " source must not contain \"..\": ~/.."},
        {entry("/x", "/t/.."), word + " target must not contain \"..\": /t/.."},
        {entry("/x", "~/.."), word + " target must not contain \"..\": ~/.."},
        {entry("/x\\0", "/t"), word + " source contains a NUL byte"},
        {entry("/x", "/t\\0"), word + " target contains a NUL byte"},
        {entry(too_long, "/t"), word + " source is longer than 4095 bytes"},
        {entry("/x", too_long), word + " target is longer than 4095 bytes"},
        {entry("/x", "//."), word + " target / is not possible: /" + reserved},
        {entry("/x", "/proc"), word + " target /proc is not possible: /proc" + reserved},
        {entry("/x", "/proc/1"), word + " target /proc/1 is not possible: /proc" + reserved},
        {entry("/x", "/sys/fs"), word + " target /sys/fs is not possible: /sys" + reserved},
        {entry("/x", "//dev//shm/"), word + " target /dev/shm is not possible: /dev" + reserved},
        {entry("/x", "/.agbox-guest"),
         word + " target /.agbox-guest is not possible: /.agbox-*" + reserved},
        {entry("/x", "/var/log/agents-sandbox/"),
         word + " target /var/log/agents-sandbox is not possible: /var/log/agents-sandbox" +
             reserved},
        {entry("/x", "/var/log"),
         word + " target /var/log is not possible: /var/log/agents-sandbox" + reserved},
        {entry("/x", "/etc/hosts"),
         word + " target /etc/hosts is not possible: /etc/hosts" + reserved},
        {entry("/x", "/etc/hostname"),
         word + " target /etc/hostname is not possible: /etc/hostname" + reserved},
        {entry("/x", "/etc"), word + " target /etc is not possible: /etc/resolv.conf" + reserved},
    });
  }
  expect_refusals({
      {copy("/", "/t"), "copy source must not be the root directory"},
      {copy("//./", "/t"), "copy source must not be the root directory"},
      {mount("/x", "/t") + mount("/y", "/t"), "conflicting target /t between mount and mount"},
      {mount("/x", "/t") + copy("/y", "/t"), "conflicting target /t between mount and copy"},
      {copy("/x", "/t") + copy("/y", "/t"), "conflicting target /t between copy and copy"},
      // Compared as they are once clean.
      {mount("/x", "/a") + mount("/y", "/a/"), "conflicting target /a between mount and mount"},
      {mount("/x", "~/b") + copy("/y", "//home/./agbox/b/"),
       "conflicting target /home/agbox/b between mount and copy"},
      {"copies { source: '/x' target: '/t' exclude_patterns: 'a' exclude_patterns: '\\0' }",
       "copy exclude_patterns[1] contains a NUL byte"},
      {"copies { source: '/x' target: '/t' exclude_patterns: '![a' }",
       "copy exclude_patterns[0] \"![a\" is not a pattern: a class [...] is empty or does not end, "
       "or "
       "a backslash escapes nothing"},
  });
}

TEST(SpecRefusals, OfPorts) {
  expect_refusals({
      {"ports { host_port: 1 }", "port container_port must be between 1 and 65535, got 0"},
      {"ports { container_port: 65536 }",
       "port container_port must be between 1 and 65535, got 65536"},
      {"ports { container_port: 1 }", "port host_port must be between 1 and 65535, got 0"},
      {"ports { container_port: 1 host_port: 4294967295 }",
       "port host_port must be between 1 and 65535, got 4294967295"},
      {"ports { container_port: 1 host_port: 1 protocol: 3 }",
       "port protocol must be TCP, UDP, or SCTP, got 3"},
      {"ports { container_port: 1 host_port: 9 } ports { container_port: 2 host_port: 9 }",
       "duplicate host_port 9 with protocol tcp"},
      {"ports { container_port: 1 host_port: 9 protocol: 2 } "
       "ports { container_port: 1 host_port: 9 protocol: 2 }",
       "duplicate host_port 9 with protocol sctp"},
  });
}

TEST(SpecRefusals, OfCompanions) {
  const std::string whose = "companion container \"db\"";
  expect_refusals({
      {"companion_containers {}", "companion container name is required"},
      {"companion_containers { name: 'db' }", whose + " image is required"},
      {db("") + db(""), "duplicate companion container name \"db\""},
      {db("post_start_on_primary: 'true'"),
       whose + " with post_start_on_primary must define healthcheck"},
      {db("post_start_on_primary: 'true' healthcheck { test: 'NONE' }"),
       whose + " with post_start_on_primary must define healthcheck"},
      {db("healthcheck {}"), whose + " healthcheck.test must not be empty"},
      {db("healthcheck { test: 'true' }"), whose + " healthcheck.test[0] \"true\" is invalid"},
      {db("healthcheck { test: 'NONE' test: 'x' }"),
       whose + " healthcheck.test must not include extra args when NONE is used"},
      {db("healthcheck { test: 'CMD' }"),
       whose + " healthcheck.test for CMD must include a command"},
      {db("healthcheck { test: 'CMD-SHELL' }"),
       whose + " healthcheck.test for CMD-SHELL must include a command"},
      {db("command: 'a' command: ''"),
       "companion_containers[db].command[1]: empty string entry is not allowed"},
      // Beyond the contract.
      {db("healthcheck { test: 'CMD' test: 'x' interval { seconds: -1 } }"),
       whose + " healthcheck.interval must not be negative"},
      {db("healthcheck { test: 'CMD' test: 'x' timeout { nanos: 1000000000 } }"),
       whose + " healthcheck.timeout is not a valid duration: at most 315576000000 s and "
               "999999999 ns"},
      {db("healthcheck { test: 'CMD' test: 'x' start_period { nanos: 999999 } }"),
       whose + " healthcheck.start_period must be at least 1ms; 0 means the default"},
      {db("healthcheck { test: 'CMD' test: '\\0' }"),
       whose + " healthcheck.test[1]: contains a NUL byte"},
      {db("healthcheck { test: 'CMD' test: 'x' } post_start_on_primary: ''"),
       "companion_containers[db].post_start_on_primary[0]: empty string entry is not allowed"},
      {"companion_containers { name: 'a.b' image: 'x' }",
       "companion container \"a.b\": a name has 1 to 63 letters, digits, hyphens or underscores"},
      {"companion_containers { name: '" + std::string(64, 'n') + "' image: 'x' }",
       "companion container \"" + std::string(64, 'n') +
           "\": a name has 1 to 63 letters, digits, hyphens or underscores"},
      {"companion_containers { name: '\\303\\251' image: 'x' }",
       "companion container \"\303\251\": a name has 1 to 63 letters, digits, hyphens or "
       "underscores"},
      {"companion_containers { name: 'Localhost' image: 'x' }",
       "companion container \"Localhost\": every container has this name for itself; use another"},
      {db("") + "companion_containers { name: 'DB' image: 'x' }",
       "duplicate companion container name \"DB\": for DNS it is the same as \"db\""},
      {"companion_containers { name: 'db' image: 'X Y' }",
       whose + ": image 'X Y': the name is not lower-case words with / between them; expected for "
               "example busybox:1.36 or registry.example/team/image:tag"},
      {db("envs { key: 'a=b' }"),
       "companion_containers[db].envs: the name \"a=b\" must not contain '=' or a NUL byte"},
  });
}

TEST(SpecRefusals, OfServices) {
  expect_refusals({
      {db("") + "required_services { name: 'db' image: 'x' }",
       "duplicate companion container name \"db\""},
      {"required_services { name: 'q' image: 'x' } optional_services { name: 'q' image: 'x' }",
       "duplicate companion container name \"q\""},
      {"required_services { name: 'q' image: 'x' } optional_services { name: 'Q' image: 'x' }",
       "duplicate companion container name \"Q\": for DNS it is the same as \"q\""},
      {"required_services { name: 'q' image: 'x' healthcheck { test: 'curl' } }",
       "companion container \"q\" healthcheck.test[0] \"curl\" is invalid"},
      {"optional_services { name: 'a.b' image: 'x' }",
       "companion container \"a.b\": a name has 1 to 63 letters, digits, hyphens or underscores"},
      {"required_services { name: 'q' image: 'x' post_start_on_primary: 'y' }",
       "companion container \"q\" with post_start_on_primary must define healthcheck"},
      {"optional_services { name: 'q' image: 'x' post_start_on_primary: 'y' "
       "healthcheck { test: 'CMD' test: 'z' } }",
       "companion container \"q\": an optional service must not have post_start_on_primary; make "
       "it one of required_services or companion_containers"},
      {"required_services { name: 'q' image: 'x' command: '' }",
       "required_services[q].command[0]: empty string entry is not allowed"},
      {"optional_services { name: 'q' image: 'x' cpu_limit: '0' }",
       "optional_services[q].cpu_limit: cpu_limit \"0\": must be > 0"},
  });
  std::string many;
  for (int i = 0; i < 13; ++i) {
    const std::string list = i % 3 == 0 ? "companion_containers"
                                        : (i % 3 == 1 ? "required_services" : "optional_services");
    many += list + " { name: 's" + std::to_string(i) + "' image: 'x' } ";
  }
  expect_refusals({{many,
                    "companion_containers and services: at most 12 are possible together, "
                    "got 13"}});
}

TEST(SpecRefusals, WhatCompanionsMayBe) {
  std::string twelve;
  for (int i = 0; i < 12; ++i) {
    const std::string list = i % 3 == 0 ? "companion_containers"
                                        : (i % 3 == 1 ? "required_services" : "optional_services");
    twelve += list + " { name: 's" + std::to_string(i) + "' image: 'x' } ";
  }
  const std::string hooks =
      "healthcheck { test: 'CMD-SHELL' test: 'true' } post_start_on_primary: 'echo 1' "
      "post_start_on_primary: 'echo 2'";
  const std::vector<std::string> good_ones = {
      twelve,
      db(hooks),
      "required_services { name: 'q' image: 'x' " + hooks + " }",
      "optional_services { name: 'q' image: 'x' healthcheck { test: 'NONE' } }",
      "optional_services { name: '" + std::string(63, 'n') + "' image: 'x' }",
      "companion_containers { name: 'A-1_b' image: 'x' }",
      "required_services { name: '-' image: 'x' } required_services { name: '_' image: 'x' }",
      db("healthcheck { test: 'CMD' test: 'x' interval { nanos: 1000000 } timeout {} }")};
  for (const std::string& good : good_ones) {
    const auto checked = check_companions(spec_of(good));
    EXPECT_TRUE(checked.has_value()) << good << ": " << checked.error().message();
  }
}

TEST(SpecRefusals, OfLimits) {
  const std::string entry = "companion_containers[db].";
  expect_refusals({
      {"cpu_limit: 'inf'", "cpu_limit: cpu_limit \"inf\": must be a finite number"},
      {"cpu_limit: '-1'", "cpu_limit: cpu_limit \"-1\": must be > 0"},
      {"cpu_limit: '0.0001'",
       "cpu_limit: cpu_limit \"0.0001\": must resolve to at least 1 millicore (0.001)"},
      {"memory_limit: 'g'", "memory_limit: memory_limit \"g\": invalid size: 'g'"},
      {"memory_limit: '1xb'", "memory_limit: memory_limit \"1xb\": invalid suffix: 'xb'"},
      {"memory_limit: '0'", "memory_limit: memory_limit \"0\": must be > 0"},
      {"disk_limit: '-1g'", "disk_limit: disk_limit \"-1g\": invalid size: '-1g'"},
      {db("cpu_limit: '0'"), entry + "cpu_limit: cpu_limit \"0\": must be > 0"},
      {db("cpu_limit: '0.001'"), entry +
                                     "cpu_limit: cpu_limit \"0.001\": must be at least 0.01, the "
                                     "minimum of the container engine"},
      {db("memory_limit: '0'"),
       entry + "memory_limit: " + entry + "memory_limit \"0\": must be > 0"},
      {db("memory_limit: '1m'"), entry + "memory_limit: " + entry +
                                     "memory_limit \"1m\": must be at least 6m, the minimum of the "
                                     "container engine"},
      {db("disk_limit: '1q'"),
       entry + "disk_limit: " + entry + "disk_limit \"1q\": invalid suffix: 'q'"},
      {"cpu_limit: '" + std::string(65, '1') + "'", "cpu_limit has more than 64 characters"},
  });
}

TEST(SpecRefusals, OfBuiltinTools) {
  expect_refusals({
      {"builtin_tools: ''", "builtin resource id must not be empty"},
      {"builtin_tools: 'git' builtin_tools: 'git'", "duplicate builtin resource \"git\""},
      {"builtin_tools: 'vim'", "unknown builtin resource \"vim\""},
  });
}

TEST(SpecRefusals, ComeInTheOrderThatClientsKnow) {
  // Each is wrong in one way; of the whole list the first that is left wins.
  const std::vector<Refusal> faults = {
      {"idle_ttl { seconds: -1 }", "idle_ttl must not be negative"},
      {"gpus: 'x'", "gpus: unsupported value \"x\"; currently only empty or \"all\" are supported"},
      {"envs { key: 'HOST_UID' }",
       "envs.HOST_UID is reserved for internal runtime setup and must not be set by "
       "CreateSpec.Envs"},
      {"mounts {}", "mount source is required"},
      {"copies {}", "copy source is required"},
      {"ports {}", "port container_port must be between 1 and 65535, got 0"},
      {db("cpu_limit: '0' command: ''"),
       "companion_containers[db].command[0]: empty string entry is not allowed"},
      {"command: ''", "command[0]: empty string entry is not allowed"},
      {"cpu_limit: '0'", "cpu_limit: cpu_limit \"0\": must be > 0"},
      {"memory_limit: '0'", "memory_limit: memory_limit \"0\": must be > 0"},
      {"disk_limit: '0'", "disk_limit: disk_limit \"0\": must be > 0"},
      {"required_services { name: 'q' image: 'x' memory_limit: '0' }",
       "required_services[q].memory_limit: required_services[q].memory_limit \"0\": must be > 0"},
      {"builtin_tools: ''", "builtin resource id must not be empty"},
  };
  for (std::size_t first = 0; first < faults.size(); ++first) {
    std::string all;
    for (std::size_t i = first; i < faults.size(); ++i) all += faults[i].spec + " ";
    expect_refusals({{all, faults[first].message}});
  }
}

TEST(SpecRefusals, WhatIsNotBuiltYetComesAfterEveryFault) {
  for (const std::string wrong : {"labels { key: '' }", "envs { key: '=' }", "cpu_limit: '0'"}) {
    const auto parsed = parse_create_spec(spec_of("gpus: 'all' " + wrong));
    EXPECT_EQ(parsed.error().reason(), reason::kInvalidArgument) << wrong;
  }
}

TEST(SpecRefusals, ListsAreBounded) {
  v1::CreateSpec many[] = {spec_of(""), spec_of(""), spec_of(""), spec_of("")};
  const auto beyond = [](std::size_t most) { return static_cast<int>(most) + 1; };
  for (int i = 0; i < beyond(maxima::kMounts); ++i) many[0].add_mounts();
  for (int i = 0; i < beyond(maxima::kCopies); ++i) many[1].add_copies();
  for (int i = 0; i < beyond(maxima::kPorts); ++i) many[2].add_ports();
  v1::CopySpec& patterns = *many[3].add_copies();
  patterns.set_source("/x");
  patterns.set_target("/t");
  for (int i = 0; i < beyond(maxima::kExcludePatterns); ++i) patterns.add_exclude_patterns("x");
  for (const v1::CreateSpec& excessive : many) {
    const auto parsed = parse_create_spec(excessive);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().reason(), reason::kResourceExhausted) << parsed.error().message();
  }
}

TEST(SpecRefusals, AnAliasedConflictOfYamlIsOne) {
  v1::CreateSandboxRequest request;
  request.set_config_yaml("image: x\nmounts: [{source: /x, target: /t}]");
  *request.mutable_create_spec() = spec_of(mount("/y", "/t"));
  EXPECT_EQ(parse_create_request(request).error().message(),
            "conflicting target /t between mount and mount");
}

}  // namespace
}  // namespace agbox
