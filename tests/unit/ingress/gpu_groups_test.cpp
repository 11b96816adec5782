// SPDX-License-Identifier: Apache-2.0
#include "ingress/gpu_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/unique_fd.h"
#include "model/reasons.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class GpuGroups : public testing::Test {
 protected:
  GpuGroups() { fs::create_directories(devices_ / "dri"); }

  // A device of another group than root's. Only root can make one of any group; a terminal belongs
  // to the group of terminals.
  gid_t add_device(const fs::path& name, gid_t gid) {
    if (::geteuid() == 0) {
      EXPECT_EQ(::mknod((devices_ / name).c_str(), S_IFCHR | 0600, makedev(1, 3)), 0);
      EXPECT_EQ(::chown((devices_ / name).c_str(), 0, gid), 0);
      return gid;
    }
    int controller = -1;
    int terminal = -1;
    std::array<char, 64> path{};
    EXPECT_EQ(::openpty(&controller, &terminal, path.data(), nullptr, nullptr), 0);
    terminals_.emplace_back(controller);
    terminals_.emplace_back(terminal);
    fs::create_symlink(path.data(), devices_ / name);
    struct stat found{};
    EXPECT_EQ(::stat(path.data(), &found), 0);
    return found.st_gid;
  }

  TempDirectory temp_directory_;
  fs::path devices_ = temp_directory_.path();
  std::vector<UniqueFd> terminals_;
};

TEST_F(GpuGroups, AreThoseOfTheDevicesAscendingAndOnce) {
  std::set<gid_t> expected{add_device("nvidia0", 109), add_device("nvidiactl", 44),
                           add_device("dri/renderD128", 109)};
  add_device("dri/card0", 4);
  add_device("tty0", 5);
  EXPECT_EQ(gpu_groups(devices_).value(), expected);
}

TEST_F(GpuGroups, NeverIncludeThatOfRoot) {
  fs::create_symlink("/dev/null", devices_ / "nvidia0");
  EXPECT_THAT(gpu_groups(devices_).value(), IsEmpty());
}

TEST_F(GpuGroups, AreThoseOfDevicesOnly) {
  fs::create_directory(devices_ / "nvidia-caps");
  std::ofstream(devices_ / "nvidia.txt") << "x";
  for (const char* name : {"nvidia-caps", "nvidia.txt"}) {
    if (::geteuid() == 0) ASSERT_EQ(::chown((devices_ / name).c_str(), 0, 44), 0);
  }
  EXPECT_THAT(gpu_groups(devices_).value(), IsEmpty());
  EXPECT_THAT(gpu_groups(devices_ / "missing").value(), IsEmpty());
}

TEST_F(GpuGroups, CannotBeKnownIfADeviceCannotBeInspected) {
  fs::create_symlink("missing", devices_ / "nvidia1");
  const auto groups = gpu_groups(devices_);
  ASSERT_FALSE(groups.has_value());
  EXPECT_EQ(groups.error().reason(), reason::kInvalidArgument);
  EXPECT_THAT(groups.error().message(), HasSubstr("nvidia1: No such file"));
}

}  // namespace
}  // namespace agbox
