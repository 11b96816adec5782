// SPDX-License-Identifier: Apache-2.0
#include "model/spec/mount_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::ElementsAre;

constexpr std::string_view kMounts =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n"
    "30 22 8:2 / /var/lib/docker rw master:2 propagate_from:1 - ext4 /dev/sdb1 rw\n"
    "31 30 8:3 / /var/lib/docker rw - xfs /dev/sdc1 rw,attr2,prjquota\n"
    "32 22 8:4 / /var/lib/docker\\040two rw - btrfs /dev/sdd1 rw\n"
    "half a line\n";

TEST(MountPoint, IsTheDeepestAndOfThoseTheLatest) {
  const auto docker = mount_point_of("/var/lib/docker/overlay2", kMounts);
  ASSERT_TRUE(docker.has_value());
  EXPECT_EQ(docker->directory, "/var/lib/docker");
  EXPECT_EQ(docker->filesystem, "xfs");
  EXPECT_THAT(docker->options, ElementsAre("rw", "attr2", "prjquota"));
  EXPECT_EQ(mount_point_of("/var/lib/docker", kMounts)->filesystem, "xfs");
}

TEST(MountPoint, IsNotOneWhoseNameMerelyBeginsAlike) {
  EXPECT_EQ(mount_point_of("/var/lib/dockerish", kMounts)->directory, "/");
  EXPECT_EQ(mount_point_of("/var/lib/docker two/x", kMounts)->filesystem, "btrfs");
}

TEST(MountPoint, IsNothingWhereNothingIsMounted) {
  EXPECT_FALSE(mount_point_of("/x", "").has_value());
  EXPECT_FALSE(mount_point_of("relative", kMounts).has_value());
}

TEST(MountPoint, ABindMountGivesAFileAnotherPathAndNotAnotherLocation) {
  const auto mounts = parse_mountinfo(
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "40 22 8:1 /home/u /mnt/here rw - ext4 /dev/sda1 rw\n"
      "41 22 0:25 / /run rw - tmpfs tmpfs rw\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[1].id, 40U);
  EXPECT_EQ(location_on(mounts[0], "/home/u/x"), (FileLocation{"8:1", "/home/u/x"}));
  EXPECT_EQ(location_on(mounts[1], "/mnt/here/x"), (FileLocation{"8:1", "/home/u/x"}));
  EXPECT_EQ(location_on(mounts[1], "/mnt/here"), (FileLocation{"8:1", "/home/u"}));
  EXPECT_EQ(location_on(mounts[2], "/run"), (FileLocation{"0:25", "/"}));
  EXPECT_EQ(location_on(mounts[0], "/"), (FileLocation{"8:1", "/"}));
  EXPECT_TRUE(is_within({"8:1", "/home/u/x"}, {"8:1", "/home/u"}));
  EXPECT_TRUE(is_within({"8:1", "/home"}, {"8:1", "/"}));
  EXPECT_FALSE(is_within({"8:1", "/home/us"}, {"8:1", "/home/u"}));
  EXPECT_FALSE(is_within({"8:2", "/home/u/x"}, {"8:1", "/home/u"}));
}

}  // namespace
}  // namespace agbox
