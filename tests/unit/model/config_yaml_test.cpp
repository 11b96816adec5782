// SPDX-License-Identifier: Apache-2.0
#include "model/spec/config_yaml.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "model/spec/maxima.h"
#include "model/spec/sandbox_spec.h"

namespace agbox {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

v1::CreateSpec spec_from(const std::string& text) {
  v1::CreateSpec message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

void expect_spec(const v1::CreateSpec& actual, const std::string& expected) {
  google::protobuf::util::MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(spec_from(expected), actual)) << differences;
}

void expect_yaml(const std::string& yaml, const std::string& expected) {
  const auto parsed = parse_config_yaml(yaml);
  ASSERT_TRUE(parsed.has_value()) << yaml << "\n" << parsed.error().message();
  SCOPED_TRACE(yaml);
  expect_spec(*parsed, expected);
}

std::string refusal(const std::string& yaml) {
  const auto parsed = parse_config_yaml(yaml);
  EXPECT_FALSE(parsed.has_value()) << yaml << "\n" << (parsed ? parsed->DebugString() : "");
  return parsed ? "" : parsed.error().message();
}

TEST(ConfigYaml, EveryKeyReachesItsField) {
  expect_yaml(R"(
image: busybox
mounts:
- {source: /a, target: /b, writable: yes}
copies:
- source: /c
  target: /d
  exclude_patterns: ["*.o", .git]
builtin_tools: [git, claude]
ports:
- container_port: 8080
  host_port: 0x1F90
  protocol: " UDP "
- {container_port: 1, host_port: 2}
labels: {a: b, n: 5}
envs: {X: "1", EMPTY: }
idle_ttl: 1h30m
command: [sleep, "1", 2]
cpu_limit: 2
memory_limit: 1.5g
disk_limit: 10g
gpus: all
bypass_entrypoint: true
)",
              R"(
image: "busybox"
mounts { source: "/a" target: "/b" writable: true }
copies { source: "/c" target: "/d" exclude_patterns: "*.o" exclude_patterns: ".git" }
builtin_tools: "git" builtin_tools: "claude"
ports { container_port: 8080 host_port: 8080 protocol: PORT_PROTOCOL_UDP }
ports { container_port: 1 host_port: 2 }
labels { key: "a" value: "b" } labels { key: "n" value: "5" }
envs { key: "X" value: "1" } envs { key: "EMPTY" value: "" }
idle_ttl { seconds: 5400 }
command: "sleep" command: "1" command: "2"
cpu_limit: "2" memory_limit: "1.5g" disk_limit: "10g" gpus: "all"
bypass_entrypoint: true
)");
}

TEST(ConfigYaml, CompanionsAreMapsByName) {
  expect_yaml(R"(
companion_containers:
  redis: {image: redis}
  db:
    image: postgres
    envs: {A: b}
    healthcheck: {test: [CMD, pg_isready], interval: 1s, timeout: 500ms, retries: 3, start_period: 0, start_interval: 0.5s}
    post_start_on_primary: [echo hi]
    command: [postgres]
    cpu_limit: 0.5
    memory_limit: 64m
    disk_limit: 1g
required_services:
  z: {image: first}
  a: {image: second}
optional_services:
  nothing:
)",
              R"(
companion_containers {
  name: "db" image: "postgres" envs { key: "A" value: "b" }
  healthcheck {
    test: "CMD" test: "pg_isready" interval { seconds: 1 } timeout { nanos: 500000000 } retries: 3
    start_period {} start_interval { nanos: 500000000 }
  }
  post_start_on_primary: "echo hi" command: "postgres"
  cpu_limit: "0.5" memory_limit: "64m" disk_limit: "1g"
}
companion_containers { name: "redis" image: "redis" }
required_services { name: "z" image: "first" } required_services { name: "a" image: "second" }
optional_services { name: "nothing" }
)");
}

TEST(ConfigYaml, NullIsAsIfTheKeyWereLeftOut) {
  expect_yaml("image:\nmounts: ~\nenvs: null\nidle_ttl: NULL\ncommand:\nbypass_entrypoint: Null\n",
              "");
  expect_yaml("builtin_tools: [git, ~, null, uv]", "builtin_tools: 'git' builtin_tools: 'uv'");
  expect_yaml("image: 'null'", "image: 'null'");
  expect_yaml("image: !!str null", "image: 'null'");
  expect_yaml("idle_ttl: ''", "");
  expect_yaml("idle_ttl: 0", "idle_ttl {}");
}

TEST(ConfigYaml, NumbersAndBooleansAsYamlWritesThem) {
  for (const char* number :
       {"80", "0x50", "0o120", "0120", "0b1010000", "8_0", "+80", "80.9", "8e1"}) {
    expect_yaml("ports: [{container_port: " + std::string(number) + "}]",
                "ports { container_port: 80 }");
  }
  for (const char* word : {"true", "True", "TRUE", "yes", "On", "y"}) {
    expect_yaml("bypass_entrypoint: " + std::string(word), "bypass_entrypoint: true");
  }
  for (const char* word : {"false", "no", "OFF", "N"}) {
    expect_yaml("bypass_entrypoint: " + std::string(word), "");
  }
  for (const char* bad :
       {"-1", "4294967296", "'80'", "eighty", "[80]", "nan", "inf", "0x", "0b2"}) {
    EXPECT_THAT(refusal("ports: [{container_port: " + std::string(bad) + "}]"),
                HasSubstr("container_port must be a whole number from 1 to 65535, without quotes"));
  }
  for (const char* bad : {"1", "'true'", "maybe", "[]"}) {
    EXPECT_THAT(refusal("bypass_entrypoint: " + std::string(bad)),
                HasSubstr("bypass_entrypoint must be true or false"));
  }
}

TEST(ConfigYaml, AnchorsAliasesAndMergeKeys) {
  expect_yaml(R"(
envs: &common {A: "1", B: "2"}
labels: *common
companion_containers:
  one: &one {image: x, cpu_limit: "1"}
  two: {<<: *one, cpu_limit: "2"}
  three:
    <<: [{memory_limit: 1g}, *one, {memory_limit: 2g}]
)",
              R"(
envs { key: "A" value: "1" } envs { key: "B" value: "2" }
labels { key: "A" value: "1" } labels { key: "B" value: "2" }
companion_containers { name: "one" image: "x" cpu_limit: "1" }
companion_containers { name: "three" image: "x" cpu_limit: "1" memory_limit: "1g" }
companion_containers { name: "two" image: "x" cpu_limit: "2" }
)");
  EXPECT_EQ(refusal("envs: *nowhere"),
            "line 1, column 7: the alias *nowhere has no anchor before it");
  EXPECT_EQ(refusal("envs: &a\n  x: *a"), "line 2, column 6: the alias *a has no anchor before it");
  EXPECT_EQ(refusal("<<: 5\nimage: x"), "line 1, column 5: << takes a map or a list of maps");
}

TEST(ConfigYaml, TagsOfItsOwnTypesAreThoseTypes) {
  expect_yaml("bypass_entrypoint: !!bool true\nimage: !!null\nports: [{container_port: !!int 80}]",
              "bypass_entrypoint: true ports { container_port: 80 }");
}

// A part that is left out silently would be a sandbox without its limits.
TEST(ConfigYaml, NothingBehindTheDocumentIsIgnored) {
  EXPECT_THAT(refusal("  image: a\nmemory_limit: 2g\n"), StartsWith("line 2, column 1: "));
  EXPECT_THAT(refusal("{image: a}\nmemory_limit: 2g\n"), StartsWith("line 2, column 1: "));
  EXPECT_THAT(refusal("just words\nimage: a\n"), StartsWith("line 2, column "));
}

TEST(ConfigYaml, OnlyTheFirstDocumentCounts) {
  expect_yaml("---\nimage: a\n---\nimage: b\n", "image: 'a'");
}

TEST(ConfigYaml, ErrorsNameLineColumnAndRemedy) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "line 1, column 1: the document is empty"},
      {"# nothing\n", "line 1, column 1: the document is empty"},
      {"---\n...\n", "line 2, column 1: the document is empty"},
      {"just words", "line 1, column 1: expected a map with the keys image, mounts, "},
      {"- image", "line 1, column 1: expected a map with the keys image, mounts, "},
      {"imagee: x", "line 1, column 1: unknown key \"imagee\"; did you mean \"image\"?"},
      {"image: x\nsandbox: y",
       "line 2, column 1: unknown key \"sandbox\"; known keys: image, mounts, "},
      {"image: a\nimage: b", "line 2, column 1: the key \"image\" is already set at line 1"},
      {"envs: {A: 1, A: 2}", "line 1, column 14: the key \"A\" is already set at line 1"},
      {"image: [x]", "line 1, column 8: image must be a string"},
      {"envs: [A=b]", "line 1, column 7: envs must be a map"},
      {"envs: {A: [b]}", "line 1, column 11: envs.A must be a string"},
      {"? [a]\n: b", "line 1, column 3: a key must be a string"},
      {"mounts: {a: b}", "line 1, column 9: mounts must be a list"},
      {"mounts: [x]", "line 1, column 10: expected a map with the keys source, target, writable"},
      {"mounts: [{from: x}]",
       "line 1, column 11: unknown key \"from\"; known keys: source, target, writable"},
      {"companion_containers: [x]",
       "line 1, column 23: companion_containers must be a map by name"},
      {"companion_containers: {x: {name: y}}",
       "line 1, column 28: unknown key \"name\"; known keys: image, "},
      {"command: sleep 1", "line 1, column 10: command must be a list of strings"},
      {"command: []",
       "line 1, column 10: command: empty array is not allowed; omit the field to use the default"},
      {"command: [[a]]", "line 1, column 11: an entry of command must be a string"},
      {"idle_ttl: 3 days",
       "line 1, column 11: invalid duration for idle_ttl: \"3 days\": use for example 30m, 1h30m "
       "or 0"},
      {"ports: [{protocol: icmp}]",
       "line 1, column 20: unsupported port protocol \"icmp\"; must be tcp, udp, or sctp"},
      {"image: !secret x", "line 1, column 8: the tag is not supported; leave it out"},
      {"image: \"a", "line 1, column "},
      {"image: x\n\tcommand: [y]", "line 2, column "},
      {"image: \xff", "line 1, column 8: the text is not UTF-8"},
  };
  for (const auto& [yaml, message] : cases) {
    EXPECT_THAT(refusal(yaml), StartsWith(message)) << yaml;
  }
  EXPECT_EQ(refusal(std::string("image: x\ncpu_limit: \0", 21)),
            "line 2, column 12: the text has a control character");
}

TEST(ConfigYaml, DocumentsThatWouldTakeMuchMemoryAreRefused) {
  const std::string large = "image: " + std::string(maxima::kConfigYamlBytes, 'x');
  EXPECT_THAT(refusal(large), HasSubstr("the size of config_yaml is"));
  EXPECT_EQ(parse_config_yaml(large).error().reason(), reason::kResourceExhausted);

  std::string deep;
  for (int i = 0; i < 40; ++i) deep += "[";
  EXPECT_THAT(refusal("mounts: " + deep), HasSubstr("levels are not possible"));

  // Ten levels of ten aliases each.
  std::string bomb = "command: &a0 [\"0123456789\"]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "k" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_THAT(refusal(bomb), HasSubstr("the document is too large with its aliases expanded"));

  std::string merges = "labels: &m {";
  for (int i = 0; i < 5000; ++i) merges += (i > 0 ? ", k" : "k") + std::to_string(i) + ": v";
  merges += "}\ncompanion_containers:\n";
  for (int i = 0; i < 200; ++i) merges += "  c" + std::to_string(i) + ": {<<: *m}\n";
  EXPECT_THAT(refusal(merges), HasSubstr("the document is too large with its aliases expanded"));

  // A long text that many aliases repeat.
  std::string repeated = "image: &i " + std::string(100'000, 'x') + "\ncommand: [*i";
  for (int i = 0; i < 100; ++i) repeated += ", *i";
  EXPECT_THAT(refusal(repeated + "]"),
              HasSubstr("the document is too large with its aliases expanded"));
}

TEST(MergeCreateSpecs, WhatTheCallerSetOverridesTheFile) {
  expect_spec(
      merge_create_specs(spec_from(R"(image: "file" cpu_limit: "1" memory_limit: "1g" gpus: "all"
                                         disk_limit: "1g" idle_ttl { seconds: 60 } command: "a" command: "b"
                                         lease_ttl { seconds: 60 nanos: 5 }
                                         mounts { source: "/f" } builtin_tools: "git" builtin_tools: "uv"
                                         labels { key: "a" value: "file" } labels { key: "b" value: "file" }
                                         envs { key: "X" value: "file" } ports { host_port: 1 })"),
                         spec_from(R"(image: "given" memory_limit: "2g" idle_ttl {} command: "c"
                                         lease_ttl { seconds: 9 }
                                         mounts { source: "/g" } builtin_tools: "uv" builtin_tools: "npm"
                                         labels { key: "b" value: "given" } envs { key: "Y" value: "given" }
                                         ports { host_port: 2 } bypass_entrypoint: true)")),
      R"(image: "given" cpu_limit: "1" memory_limit: "2g" gpus: "all" disk_limit: "1g"
                 idle_ttl {} command: "c" mounts { source: "/f" } mounts { source: "/g" }
                 lease_ttl { seconds: 9 }
                 builtin_tools: "git" builtin_tools: "uv" builtin_tools: "npm"
                 labels { key: "a" value: "file" } labels { key: "b" value: "given" }
                 envs { key: "X" value: "file" } envs { key: "Y" value: "given" }
                 ports { host_port: 1 } ports { host_port: 2 } bypass_entrypoint: true)");
}

TEST(MergeCreateSpecs, CompanionsOfTheCallerComeAfterThoseOfTheFile) {
  expect_spec(merge_create_specs(spec_from(R"(companion_containers { name: "z" }
                                               required_services { name: "y" }
                                               optional_services { name: "x" })"),
                                 spec_from(R"(companion_containers { name: "c" }
                                               required_services { name: "b" }
                                               optional_services { name: "x" })")),
              R"(companion_containers { name: "z" } companion_containers { name: "c" }
                 required_services { name: "y" } required_services { name: "b" }
                 optional_services { name: "x" } optional_services { name: "x" })");
}

TEST(MergeCreateSpecs, WhatTheCallerLeftOutStays) {
  const std::string file = R"(image: "file" idle_ttl { seconds: 60 } command: "a")";
  expect_spec(merge_create_specs(spec_from(file), {}), file);
}

TEST(CreateRequest, WithAFile) {
  v1::CreateSandboxRequest request;
  request.set_config_yaml("image: busybox\nlabels: {a: b}\nidle_ttl: 1h\n");
  auto parsed = parse_create_request(request);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->create_spec.image(), "busybox");
  EXPECT_EQ(parsed->idle_ttl, std::chrono::hours(1));

  request.mutable_create_spec()->set_image("alpine");
  EXPECT_EQ(parse_create_request(request)->create_spec.image(), "alpine");

  request.set_config_yaml("imagee: busybox");
  EXPECT_EQ(
      parse_create_request(request).error().message(),
      "invalid config_yaml: line 1, column 1: unknown key \"imagee\"; did you mean \"image\"?");
  EXPECT_EQ(parse_create_request(request).error().reason(), reason::kInvalidArgument);

  request.clear_create_spec();
  request.set_config_yaml("labels: {a: b}");
  EXPECT_EQ(parse_create_request(request).error().message(), "create_spec.image is required");
  request.set_config_yaml("image: busybox\ncompanion_containers: {db: {image: db}}");
  EXPECT_EQ(parse_create_request(request)->create_spec.companion_containers(0).name(), "db");
}

}  // namespace
}  // namespace agbox
