// SPDX-License-Identifier: Apache-2.0
#include "model/spec/sandbox_spec.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "model/spec/maxima.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

v1::CreateSpec spec(const std::string& text) {
  v1::CreateSpec message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(SandboxSpec, HoldsWhatWasParsed) {
  const auto parsed = parse_create_spec(
      spec(R"(image: "busybox" idle_ttl { seconds: 90 } cpu_limit: "0.5" memory_limit: "64m"
              command: "sleep" command: "1" labels { key: "a" value: "b" } envs { key: "X" })"));
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
  EXPECT_EQ(parsed->idle_ttl, 90s);
  EXPECT_EQ(parsed->cpu_limit->millicores(), 500);
  EXPECT_EQ(parsed->memory_limit->bytes(), 64 << 20);
}

TEST(SandboxSpec, AnAbsentIdleTtlIsNotZero) {
  EXPECT_EQ(parse_create_spec(spec("image: 'x'"))->idle_ttl, std::nullopt);
  EXPECT_EQ(parse_create_spec(spec("image: 'x' idle_ttl {}"))->idle_ttl, 0ns);
}

TEST(SandboxSpec, AnIdleTtlOfMoreThanAHundredYearsMeansNever) {
  // 3153600000 s are a hundred years, 9223372036 s Go's largest duration.
  EXPECT_EQ(parse_create_spec(spec("image: 'x' idle_ttl { seconds: 3153600000 }"))->idle_ttl,
            std::chrono::seconds(3153600000));
  for (const char* ttl :
       {"seconds: 3153600001", "seconds: 9223372036 nanos: 854775807", "seconds: 315576000000"}) {
    const auto parsed = parse_create_spec(spec("image: 'x' idle_ttl { " + std::string(ttl) + " }"));
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message();
    EXPECT_EQ(parsed->idle_ttl, 0ns) << ttl;
  }
}

TEST(SandboxSpec, ALeaseIsAsLongAsRequestedAndAtMostAHundredYears) {
  EXPECT_EQ(parse_create_spec(spec("image: 'x'"))->lease_ttl, std::nullopt);
  EXPECT_EQ(parse_create_spec(spec("image: 'x' lease_ttl { seconds: 10 nanos: 5 }"))->lease_ttl,
            10s + 5ns);
  EXPECT_EQ(parse_create_spec(spec("image: 'x' lease_ttl { seconds: 315576000000 }"))->lease_ttl,
            876'000h);
}

TEST(SandboxSpec, TheSmallestLimitsAreAccepted) {
  EXPECT_TRUE(parse_create_spec(
      spec("image: 'x' memory_limit: '6m' idle_ttl { seconds: 1 } lease_ttl { seconds: 1 }")));
}

TEST(SandboxSpec, MoreCpusThanTheEngineHasAreRefused) {
  const auto parsed = parse_create_spec(spec("image: 'x' cpu_limit: '2.001'")).value();
  const auto refused = check_cpus(parsed, 2);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
  EXPECT_EQ(
      refused.error().message(),
      "cpu_limit: cpu_limit \"2.001\": must be at most 2, the number of CPUs of the container "
      "engine");
  EXPECT_TRUE(check_cpus(parsed, 3));
  EXPECT_TRUE(check_cpus(parsed, 0));  // not known
  EXPECT_TRUE(check_cpus(parse_create_spec(spec("image: 'x' cpu_limit: '2'")).value(), 2));
  EXPECT_TRUE(check_cpus(parse_create_spec(spec("image: 'x'")).value(), 2));
}

TEST(SandboxSpec, MoreCpusThanTheEngineHasAreRefusedOfCompanionsToo) {
  for (const std::string field : {"companion_containers", "required_services"}) {
    SandboxSpec parsed;
    parsed.create_spec =
        spec("image: 'x' " + field + " { name: 'db' image: 'y' cpu_limit: '2.001' }");
    const auto refused = check_cpus(parsed, 2);
    ASSERT_FALSE(refused.has_value()) << field;
    EXPECT_EQ(refused.error().message(),
              field +
                  "[db].cpu_limit: cpu_limit \"2.001\": must be at most 2, the number of CPUs "
                  "of the container engine");
    EXPECT_TRUE(check_cpus(parsed, 3));
    EXPECT_TRUE(check_cpus(parsed, 0));
  }
}

TEST(SandboxSpec, TheFirstProblemIsNamed) {
  struct Row {
    std::string spec;
    Reason reason;
    std::string message;
  };
  const Row rows[] = {
      {"", reason::kInvalidArgument, "create_spec.image is required"},
      {"image: 'x' idle_ttl { seconds: -1 }", reason::kInvalidArgument,
       "idle_ttl must not be negative"},
      {"image: 'x' idle_ttl { nanos: -1 }", reason::kInvalidArgument,
       "idle_ttl must not be negative"},
      {"image: 'x' idle_ttl { seconds: 9223372036854775807 }", reason::kInvalidArgument,
       "idle_ttl is not a valid duration: at most 315576000000 s and 999999999 ns"},
      {"image: 'x' idle_ttl { nanos: 1000000000 }", reason::kInvalidArgument,
       "idle_ttl is not a valid duration: at most 315576000000 s and 999999999 ns"},
      {"image: 'x' idle_ttl { nanos: 999999999 }", reason::kInvalidArgument,
       "idle_ttl must be at least 1s; 0 disables the idle stop"},
      {"image: 'x' lease_ttl { nanos: -1 }", reason::kInvalidArgument,
       "lease_ttl must not be negative"},
      {"image: 'x' lease_ttl { nanos: 1000000000 }", reason::kInvalidArgument,
       "lease_ttl is not a valid duration: at most 315576000000 s and 999999999 ns"},
      {"image: 'x' lease_ttl { nanos: 999999999 }", reason::kInvalidArgument,
       "lease_ttl must be at least 1s; leave it out for a sandbox that is kept"},
      {"image: 'x' lease_ttl {}", reason::kInvalidArgument,
       "lease_ttl must be at least 1s; leave it out for a sandbox that is kept"},
      {"image: 'Not an image'", reason::kInvalidArgument,
       "image 'Not an image': the name is not lower-case words with / between them; expected for "
       "example busybox:1.36 or registry.example/team/image:tag"},
      {"image: 'x' envs { key: 'AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS' }", reason::kInvalidArgument,
       "envs.AGENTS_SANDBOX_SUPPLEMENTAL_GROUPS is reserved for internal runtime setup and must "
       "not "
       "be set by CreateSpec.Envs"},
      {"image: 'x' envs { key: 'HOST_UID' value: '0' }", reason::kInvalidArgument,
       "envs.HOST_UID is reserved for internal runtime setup and must not be set by "
       "CreateSpec.Envs"},
      {"image: 'x' envs { key: '' }", reason::kInvalidArgument, "envs: a name must not be empty"},
      {"image: 'x' envs { key: 'a=b' }", reason::kInvalidArgument,
       "envs: the name \"a=b\" must not contain '=' or a NUL byte"},
      {"image: 'x' envs { key: 'a' value: '\\0' }", reason::kInvalidArgument,
       "envs.a: the value contains a NUL byte"},
      {"image: 'x' labels { key: '' }", reason::kInvalidArgument,
       "labels: a key must not be empty"},
      {"image: 'x' labels { key: '\\n' }", reason::kInvalidArgument,
       "labels: a key must not contain control characters"},
      {"image: 'x' command: 'a' command: ''", reason::kInvalidArgument,
       "command[1]: empty string entry is not allowed"},
      {"image: 'x' cpu_limit: '0'", reason::kInvalidArgument,
       "cpu_limit: cpu_limit \"0\": must be > 0"},
      {"image: 'x' cpu_limit: '0.0099'", reason::kInvalidArgument,
       "cpu_limit: cpu_limit \"0.0099\": must be at least 0.01, the minimum of the container "
       "engine"},
      {"image: 'x' memory_limit: '1x'", reason::kInvalidArgument,
       "memory_limit: memory_limit \"1x\": invalid suffix: 'x'"},
      {"image: 'x' memory_limit: '6291455'", reason::kInvalidArgument,
       "memory_limit: memory_limit \"6291455\": must be at least 6m, the minimum of the container "
       "engine"},
      {"image: 'x' idle_ttl { seconds: -1 } cpu_limit: '0'", reason::kInvalidArgument,
       "idle_ttl must not be negative"},
  };
  for (const Row& row : rows) {
    const auto parsed = parse_create_spec(spec(row.spec));
    ASSERT_FALSE(parsed.has_value()) << row.spec;
    EXPECT_EQ(parsed.error().reason(), row.reason) << row.spec;
    EXPECT_EQ(parsed.error().message(), row.message) << row.spec;
  }
}

TEST(SandboxSpec, AStoredOneIsReadWhateverRequestsAreChecked) {
  const auto stored =
      read_stored_spec(spec("image: 'x' gpus: 'all' labels { key: '\\n' } envs { key: '' } "
                            "command: '' idle_ttl { seconds: 90 } memory_limit: '64m' "
                            "lease_ttl { nanos: 1 }"));
  EXPECT_TRUE(read_stored_spec(spec("image: 'X Y' idle_ttl { nanos: 1 } memory_limit: '1m'")));
  ASSERT_TRUE(stored.has_value()) << stored.error().message();
  EXPECT_EQ(stored->idle_ttl, 90s);
  EXPECT_EQ(stored->lease_ttl, 1ns);
  EXPECT_EQ(stored->memory_limit->bytes(), 64 << 20);
  EXPECT_EQ(stored->create_spec.gpus(), "all");
  for (const std::string text :
       {"", "image: 'x' cpu_limit: 'many'", "image: 'x' idle_ttl { nanos: -1 }"}) {
    EXPECT_FALSE(read_stored_spec(spec(text)).has_value()) << text;
  }
}

TEST(SandboxSpec, AFieldOfALaterVersionIsRefused) {
  v1::CreateSpec later = spec("image: 'x'");
  later.GetReflection()->MutableUnknownFields(&later)->AddVarint(150, 1);
  const auto parsed = parse_create_spec(later);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().reason(), reason::kUnimplemented);
  EXPECT_THAT(parsed.error().message(), HasSubstr("create_spec has field number 150"));
}

TEST(SandboxSpec, CompanionsAndServicesAreAccepted) {
  for (const std::string list :
       {"companion_containers", "required_services", "optional_services"}) {
    EXPECT_TRUE(parse_create_spec(spec("image: 'x' " + list + " { name: 'db' image: 'y' }")))
        << list;
  }
}

TEST(SandboxSpec, ARequestWithoutASpecIsRefused) {
  EXPECT_EQ(parse_create_request({}).error().message(), "create_spec is required");
}

TEST(SandboxSpec, MoreThanTheMaximaIsResourceExhausted) {
  v1::CreateSpec many_labels = spec("image: 'x'");
  for (std::size_t i = 0; i <= maxima::kLabels; ++i) {
    (*many_labels.mutable_labels())["k" + std::to_string(i)] = "";
  }
  v1::CreateSpec long_value = spec("image: 'x'");
  (*long_value.mutable_labels())["k"] = std::string(maxima::kLabelValueBytes + 1, 'v');
  v1::CreateSpec too_large = spec("image: 'x'");
  (*too_large.mutable_envs())["k"] = std::string(maxima::kSpecBytes, 'v');
  for (const v1::CreateSpec& excessive : {many_labels, long_value, too_large}) {
    const auto parsed = parse_create_spec(excessive);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().reason(), reason::kResourceExhausted);
  }
}

}  // namespace
}  // namespace agbox
