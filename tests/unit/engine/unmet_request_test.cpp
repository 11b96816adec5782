// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/unmet_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr const char* kNoQuota =
    "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
constexpr const char* kNoDriver =
    "could not select device driver \"nvidia\" with capabilities: [[gpu]]";

SandboxSpec spec(const std::string& disk_limit, const std::string& gpus) {
  v1::CreateSpec wanted;
  wanted.set_image("x");
  wanted.set_disk_limit(disk_limit);
  wanted.set_gpus(gpus);
  return parse_create_spec(std::move(wanted)).value();
}

EngineError refused(const std::string& text, EngineErrorKind kind = EngineErrorKind::Refused) {
  return {kind, "create container c: Error response from daemon: " + text, 500, text};
}

EngineIdentity engine(const std::string& driver, const std::string& filesystem) {
  EngineIdentity made;
  made.storage_driver = driver;
  made.backing_filesystem = filesystem;
  return made;
}

TEST(UnmetRequest, ARefusedDiskLimitNamesItsPrerequisites) {
  for (const std::string text : {kNoQuota, "set quota: inappropriate ioctl for device"}) {
    const EngineError error = in_terms_of(spec("1g", ""), refused(text));
    EXPECT_THAT(error.message(),
                AllOf(StartsWith("disk_limit not supported by Docker runtime: " + text + "."),
                      HasSubstr("overlay2 storage driver on XFS with prjquota mount option"),
                      EndsWith("leave disk_limit out.")));
    EXPECT_EQ(error.engine_text(), text);
    EXPECT_TRUE(error.is_definite());
  }
}

TEST(UnmetRequest, RefusedGpusNameTheToolkit) {
  EXPECT_THAT(in_terms_of(spec("", "all"), refused(kNoDriver)).message(),
              AllOf(StartsWith("gpus: the Docker Engine cannot give GPUs to containers: " +
                               std::string(kNoDriver)),
                    HasSubstr("NVIDIA Container Toolkit"), EndsWith("leave gpus out.")));
}

TEST(UnmetRequest, OtherRefusalsStayAsTheyAre) {
  EXPECT_EQ(in_terms_of(spec("", ""), refused(kNoQuota)), refused(kNoQuota));
  EXPECT_EQ(in_terms_of(spec("1g", ""), refused(kNoDriver)), refused(kNoDriver));
  EXPECT_EQ(in_terms_of(spec("1g", "all"), refused("no such image")), refused("no such image"));
  const EngineError lost = refused(kNoQuota, EngineErrorKind::Unavailable);
  EXPECT_EQ(in_terms_of(spec("1g", ""), lost), lost);
}

TEST(UnmetRequest, OfACompanionNamesIt) {
  v1::CompanionContainerSpec companion;
  companion.set_name("db");
  EXPECT_EQ(in_terms_of(companion, refused(kNoQuota)), refused(kNoQuota));
  companion.set_disk_limit("1g");
  const EngineError limit = in_terms_of(companion, refused(kNoQuota));
  EXPECT_THAT(limit.message(),
              AllOf(StartsWith("companion container \"db\": disk_limit not supported by Docker"),
                    EndsWith("leave disk_limit out.")));
  EXPECT_EQ(limit.engine_text(), kNoQuota);
  EXPECT_THAT(in_terms_of(companion, refused("exec: \"docker-init\": not found")).message(),
              AllOf(StartsWith("companion container \"db\": the Docker Engine has no init"),
                    EndsWith("restart Docker.")));
  EXPECT_EQ(in_terms_of(companion, refused("no such image")), refused("no such image"));
  const EngineError lost = refused(kNoQuota, EngineErrorKind::Unavailable);
  EXPECT_EQ(in_terms_of(companion, lost), lost);
}

TEST(UnmetRequest, AnEngineThatCannotLimitFilesIsKnownBeforehand) {
  EXPECT_THAT(disk_limit_shortcoming(engine("overlay2", "extfs")),
              HasSubstr("its storage driver is overlay2 on extfs. Prerequisites: "));
  EXPECT_THAT(disk_limit_shortcoming(engine("vfs", "")), HasSubstr("its storage driver is vfs. "));
  EXPECT_THAT(disk_limit_shortcoming(engine("overlayfs", "xfs")), HasSubstr("overlayfs on xfs"));
  // Depends on the mount, so that the engine has to decide.
  EXPECT_THAT(disk_limit_shortcoming(engine("overlay2", "xfs")), IsEmpty());
  EXPECT_THAT(disk_limit_shortcoming(engine("overlay2", "")), IsEmpty());
  EXPECT_THAT(disk_limit_shortcoming(engine("btrfs", "btrfs")), IsEmpty());
}

}  // namespace
}  // namespace agbox
