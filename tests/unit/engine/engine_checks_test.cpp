// SPDX-License-Identifier: Apache-2.0
// How the engine's checks of a diagnosis judge what they gathered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/docker/doctor/checks/address_pool.h"
#include "engine/docker/doctor/checks/engine.h"
#include "engine/docker/doctor/checks/images.h"
#include "engine/docker/doctor/checks/unknown_primaries.h"
#include "model/reasons.h"
#include "unit/model/judged_check.h"

namespace agbox {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::unexpected<Error> failed(const std::string& message) {
  return fail(reason::kEngineUnavailable, message);
}

Ipv4Network range(std::string_view text) {
  return parse_ipv4_network(text).value();
}

EngineReport docker() {
  EngineReport facts;
  facts.title = "Docker 28.5.2 (API 1.51)";
  facts.endpoint = "/var/run/docker.sock";
  return facts;
}

TEST(EngineCheck, IsReachableAndFit) {
  EXPECT_EQ(judged(EngineCheck{.engine = docker()}),
            "OK Docker 28.5.2 (API 1.51) is reachable at /var/run/docker.sock\n");
  EXPECT_THAT(judged(EngineCheck{.engine = failed("connection refused")}),
              StartsWith("BROKEN connection refused | sudo systemctl start docker"));
  EngineReport unfit = docker();
  unfit.unfit = "Podman cannot run sandboxes";
  EXPECT_THAT(judged(EngineCheck{.engine = unfit}),
              AllOf(StartsWith("BROKEN Podman cannot run sandboxes | "),
                    HasSubstr("sudo systemctl restart docker")));
}

TEST(LiveRestoreCheck, WarnsIfARestartStopsSandboxes) {
  EXPECT_THAT(judged(LiveRestoreCheck{.is_enabled = true}), StartsWith("OK "));
  EXPECT_THAT(judged(LiveRestoreCheck{.is_enabled = false}),
              AllOf(StartsWith("WARNING a restart of the engine stops every sandbox"),
                    HasSubstr("| set \"live-restore\": true")));
  EXPECT_EQ(judged(LiveRestoreCheck{}), "UNKNOWN not checked: the engine is unreachable\n");
}

TEST(LayerQuotaCheck, NeedsXfsWithProjectQuotasOrADriverWithItsOwn) {
  const auto verdict = [](const std::string& driver, const std::string& filesystem,
                          std::optional<bool> project_quota) {
    const std::string text = judged(LayerQuotaCheck{.driver = driver,
                                                    .backing_filesystem = filesystem,
                                                    .root_directory = "/var/lib/docker",
                                                    .has_project_quota = project_quota});
    return text.substr(0, text.find(' '));
  };
  EXPECT_EQ(verdict("overlay2", "xfs", true), "OK");
  EXPECT_EQ(verdict("overlay2", "xfs", false), "WARNING");
  EXPECT_EQ(verdict("overlay2", "xfs", std::nullopt), "UNKNOWN");
  EXPECT_EQ(verdict("overlay2", "extfs", true), "WARNING");
  EXPECT_EQ(verdict("overlay2", "", true), "UNKNOWN");
  EXPECT_EQ(verdict("btrfs", "", std::nullopt), "OK");
  EXPECT_EQ(verdict("zfs", "", std::nullopt), "OK");
  EXPECT_EQ(verdict("overlayfs", "xfs", true), "WARNING");  // containerd's, which has none
  EXPECT_EQ(verdict("", "", std::nullopt), "UNKNOWN");
  EXPECT_THAT(judged(LayerQuotaCheck{.driver = "overlay2",
                                     .backing_filesystem = "extfs",
                                     .root_directory = "/var/lib/docker",
                                     .has_project_quota = {}}),
              AllOf(HasSubstr("cannot limit what a sandbox writes into its own files (overlay2 on "
                              "extfs in /var/lib/docker): "),
                    HasSubstr("mounted with pquota")));
}

TEST(ImagesCheck, WarnsOfEachThatIsMissing) {
  EXPECT_EQ(judged(ImagesCheck{.requested = 2, .missing = {}}), "OK 2 images are on the engine\n");
  EXPECT_EQ(judged(ImagesCheck{}), "OK no sandbox has an image yet\n");
  const std::vector<ImagesCheck::Missing> missing = {{.name = "debian:12"},
                                                     {.name = "busybox", .is_of_sandbox = true}};
  EXPECT_EQ(judged(ImagesCheck{.requested = 3, .missing = missing}),
            "WARNING debian:12 is not on the engine: the next create with it has to pull it | "
            "docker pull debian:12\n"
            "WARNING busybox is not on the engine, though a sandbox was made of it: the next "
            "create with it has to pull it | docker pull busybox\n");
  EXPECT_EQ(judged(ImagesCheck{.requested = 1, .missing = failed("connection refused")}),
            "UNKNOWN not checked: connection refused\n");
}

TEST(UnknownPrimariesCheck, NamesTheFirstHundred) {
  EXPECT_THAT(judged(UnknownPrimariesCheck{}), StartsWith("OK "));
  EXPECT_EQ(judged(UnknownPrimariesCheck{.unknown = failed("connection refused")}),
            "UNKNOWN not checked: connection refused\n");
  std::vector<UnknownPrimary> many(
      103, {.sandbox_id = "box-9", .container_id = {}, .container_name = "c-1"});
  const std::string text = judged(UnknownPrimariesCheck{.unknown = many});
  EXPECT_THAT(text, AllOf(StartsWith("WARNING container c-1 carries our label, for sandbox box-9"),
                          HasSubstr(" | docker rm -f c-1 once nothing in it is needed\n"),
                          HasSubstr("\nWARNING and 3 more of the kind | docker ps --all")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 101);
}

TEST(AddressPoolCheck, CountsWhatIsFreeAndOverlapsNothingOfTheHost) {
  AddressPoolCheck check{.pool = range("10.201.0.0/24"), .in_use = {}, .taken = {}};
  EXPECT_EQ(judged(check), "OK 16 of 16 networks for sandboxes are free in 10.201.0.0/24\n");
  check.taken = {range("10.201.0.0/25"), range("10.201.0.128/26"), range("10.201.0.192/27"),
                 range("10.201.0.224/28")};
  EXPECT_THAT(judged(check), AllOf(StartsWith("WARNING 1 of 16"), HasSubstr("delete sandboxes")));
  check.taken = {range("10.201.0.0/24")};
  EXPECT_THAT(judged(check), AllOf(StartsWith("BROKEN 0 of 16 networks for sandboxes are free in "
                                              "10.201.0.0/24, so no sandbox can be created"),
                                   HasSubstr("delete sandboxes")));
  check.in_use = {range("10.201.0.128/25")};
  EXPECT_THAT(judged(check), AllOf(StartsWith("BROKEN "),
                                   HasSubstr("overlaps this host's route to 10.201.0.128/25"),
                                   HasSubstr("| set network.address_pool")));
  check.taken = failed("no netlink here");
  EXPECT_EQ(judged(check), "UNKNOWN not checked: no netlink here\n");
}

}  // namespace
}  // namespace agbox
