// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/engine_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/reasons.h"

namespace agbox {
namespace {

using testing::HasSubstr;

EngineVersion version_of(std::string_view newest, std::string_view oldest) {
  return {.version = "x",
          .newest_api = *parse_api_version(newest),
          .oldest_api = *parse_api_version(oldest)};
}

TEST(Negotiate, TakesTheNewestThatBothSpeak) {
  EXPECT_EQ(negotiate(version_of("1.41", "1.12"))->text(), "1.41");
  EXPECT_EQ(negotiate(version_of("1.51", "1.24"))->text(), "1.51");
  EXPECT_EQ(negotiate(version_of("1.56", "1.44"))->text(), "1.56");
  EXPECT_EQ(negotiate(version_of("1.70", "1.44"))->text(), "1.56");
}

TEST(Negotiate, RefusesWhatIsTooOldOrTooNew) {
  EXPECT_THAT(negotiate(version_of("1.40", "1.12")).error().message(),
              HasSubstr("too old: it speaks API 1.40, and API 1.41 (Docker 20.10) or newer"));
  EXPECT_THAT(negotiate(version_of("2.1", "1.57")).error().message(), HasSubstr("too new"));
}

TEST(ApiVersion, OrdersByNumberNotByText) {
  EXPECT_LT(*parse_api_version("1.9"), *parse_api_version("1.41"));
  for (const std::string_view bad : {"", "1", "1.", ".1", "1.x", "1.41 ", "-1.4", "1.4.1"}) {
    EXPECT_EQ(parse_api_version(bad), std::nullopt) << bad;
  }
}

TEST(ReadEngineVersion, TellsPodmanFromDocker) {
  EXPECT_EQ(read_engine_version(R"({"ApiVersion":"1.44","MinAPIVersion":"1.24","Version":"5.8.0",
      "Components":[{"Name":"Podman Engine"}]})")
                ->kind,
            EngineKind::Podman);
  EXPECT_EQ(read_engine_version(R"({"ApiVersion":"1.44","Components":[{"Name":"Engine"}]})")->kind,
            EngineKind::Docker);
  EXPECT_FALSE(read_engine_version("{}"));
  EXPECT_FALSE(read_engine_version(R"({"ApiVersion":"new"})"));
}

EngineIdentity identity_of(std::string_view info) {
  const auto engine = read_engine_identity(info, version_of("1.41", "1.12"), {1, 41});
  if (!engine) throw std::runtime_error(engine.error().message());
  return *engine;
}

TEST(ReadEngineIdentity, GivesTheFacts) {
  const EngineIdentity engine =
      identity_of(R"({"ID":"AAAA","OSType":"linux","LiveRestoreEnabled":true,
      "FirewallBackend":{"Driver":"nftables"},"NCPU":4,
      "SecurityOptions":["name=apparmor","name=seccomp,profile=builtin","name=cgroupns"]})");
  EXPECT_EQ(engine.id, "AAAA");
  EXPECT_EQ(engine.firewall_backend, "nftables");
  EXPECT_EQ(engine.cpus, 4);
  EXPECT_TRUE(engine.has_live_restore);
  EXPECT_TRUE(engine.has_seccomp);
  EXPECT_FALSE(engine.is_rootless);
  EXPECT_TRUE(judge(engine));
}

TEST(ReadEngineIdentity, KnowsTheFilesystemBelowTheDriver) {
  EXPECT_EQ(identity_of(R"({"ID":"A","DriverStatus":[["Supports d_type","true"],
      ["Backing Filesystem","xfs"]]})")
                .backing_filesystem,
            "xfs");
  EXPECT_EQ(identity_of(R"({"ID":"A"})").backing_filesystem, "");
  EXPECT_EQ(identity_of(R"({"ID":"A","DriverStatus":{"of":"another form"}})").backing_filesystem,
            "")
      << "that is no reason to refuse an engine";
}

TEST(ReadEngineIdentity, HasATitleForPeople) {
  EngineIdentity engine = identity_of(R"({"ID":"A"})");
  engine.version = "28.5.2";
  EXPECT_EQ(title_of(engine), "Docker 28.5.2 (API 1.41)");
  engine.kind = EngineKind::Podman;
  EXPECT_EQ(title_of(engine), "Podman 28.5.2 (API 1.41)");
}

TEST(ReadEngineIdentity, PodmansIdStaysTheSame) {
  EngineVersion podman = version_of("1.44", "1.24");
  podman.kind = EngineKind::Podman;
  const auto id_of = [&](std::string_view made_up) {
    return read_engine_identity(R"({"ID":")" + std::string(made_up) +
                                    R"(","Name":"h","DockerRootDir":"/var/lib/containers"})",
                                podman, {1, 44})
        ->id;
  };
  EXPECT_EQ(id_of("one"), id_of("two"));
}

TEST(ReadEngineIdentity, AnEngineWithoutAnIdIsGarbled) {
  EXPECT_FALSE(read_engine_identity("{}", version_of("1.41", "1.12"), {1, 41}));
}

TEST(Judge, RefusesWhatCannotHoldOurPromisesAndSaysWhatIsNeeded) {
  const auto words = [](std::string_view options, std::string_view os = "linux") {
    const Result<> verdict =
        judge(identity_of(R"({"ID":"A","OSType":")" + std::string(os) + R"(","SecurityOptions":[)" +
                          std::string(options) + "]}"));
    EXPECT_FALSE(verdict);
    if (verdict) return std::string();
    EXPECT_EQ(verdict.error().reason(), reason::kEngineUnavailable);
    return verdict.error().message();
  };
  const std::string seccomp = R"("name=seccomp,profile=default")";
  EXPECT_THAT(words(seccomp + R"(,"name=rootless")"), HasSubstr("an engine that runs as root"));
  EXPECT_THAT(words(seccomp + R"(,"name=userns")"), HasSubstr("remove userns-remap"));
  EXPECT_THAT(words(seccomp + R"(,"name=selinux")"), HasSubstr("remove selinux-enabled"));
  EXPECT_THAT(words(""), HasSubstr("with seccomp are needed"));
  EXPECT_THAT(words(seccomp, "windows"), HasSubstr("run on windows"));
}

TEST(Judge, RefusesPodman) {
  EngineIdentity engine = identity_of(R"({"ID":"A","OSType":"linux",
      "SecurityOptions":["name=seccomp"]})");
  ASSERT_TRUE(judge(engine));
  engine.kind = EngineKind::Podman;
  EXPECT_THAT(judge(engine).error().message(), HasSubstr("use Docker 20.10 or newer"));
}

}  // namespace
}  // namespace agbox
