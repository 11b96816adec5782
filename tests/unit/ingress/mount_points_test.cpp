// SPDX-License-Identifier: Apache-2.0
#include "ingress/mount_points.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/reasons.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;

class MountPoints : public testing::Test {
 protected:
  MountPoints() {
    fs::create_directories(directory_.path() / "has/below");
    fs::create_directory_symlink("below", directory_.path() / "has/link");
    fs::create_directory_symlink("/below", directory_.path() / "has/absolute");
    source_.path = "/home/me/project";
    source_.fd = UniqueFd(::open((directory_.path() / "has").c_str(), O_PATH | O_CLOEXEC));
  }

  PlacedMount at(const std::string& target, bool is_writable = false) const {
    return {.source = &source_, .target = target, .is_writable = is_writable};
  }

  TempDirectory directory_;
  PinnedSource source_;
};

TEST_F(MountPoints, BelowAReadOnlyMountMustExist) {
  const auto refused = check_mount_points({at("/w/other"), at("/w")});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
  EXPECT_EQ(refused.error().message(),
            "mount target /w/other does not exist in /home/me/project, which is mounted read-only "
            "at /w; create it there, or choose another target");
  for (const char* target : {"/w/below", "/w/link", "/w/absolute"}) {
    EXPECT_TRUE(check_mount_points({at("/w"), at(target)})) << target;
  }
}

TEST_F(MountPoints, BelowAWritableMountAreCreated) {
  EXPECT_TRUE(check_mount_points({at("/w", true), at("/w/other")}));
}

TEST_F(MountPoints, AreThoseOfTheInnermostMount) {
  EXPECT_TRUE(check_mount_points({at("/w"), at("/w/below", true), at("/w/below/other")}));
  EXPECT_FALSE(check_mount_points({at("/w", true), at("/w/below"), at("/w/below/other")}));
}

TEST_F(MountPoints, NamesThatOnlyBeginAlikeAreNotBelow) {
  EXPECT_TRUE(check_mount_points({at("/w"), at("/w2/other"), at("/x")}));
}

}  // namespace
}  // namespace agbox
