// SPDX-License-Identifier: Apache-2.0
#include "guestlink/guest_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/uuid.h"

namespace agbox::guestlink {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class GuestProgramTest : public testing::Test {
 protected:
  GuestProgramTest() : root_(fs::temp_directory_path() / ("agbox-program-" + random_uuid())) {
    fs::create_directories(root_ / "state");
  }
  ~GuestProgramTest() override { fs::remove_all(root_); }

  fs::path write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
    ::chmod((root_ / path).c_str(), 0755);
    return root_ / path;
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path root_;
};

TEST_F(GuestProgramTest, IsFoundInLibexecThenBesideTheDaemon) {
  const fs::path daemon = root_ / "bin" / "agboxd";
  const auto missing = find_guest_program(daemon);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("libexec/agents-sandbox/agbox-guest"));
  const fs::path beside = write("bin/agbox-guest", "beside");
  EXPECT_EQ(find_guest_program(daemon).value(), beside);
  const fs::path installed = write("libexec/agents-sandbox/agbox-guest", "installed");
  EXPECT_EQ(find_guest_program(daemon).value(), installed);
}

TEST_F(GuestProgramTest, IsCopiedUnderItsHashAndOutlivesItsSource) {
  const fs::path source = write("bin/agbox-guest", "abc");
  const auto installed = install_guest_program(source, root_ / "state");
  ASSERT_TRUE(installed) << installed.error().message();
  EXPECT_EQ(installed->sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(installed->path, root_ / "state/guests" / installed->sha256 / "agbox-guest");
  fs::remove(source);
  EXPECT_EQ(read(installed->path), "abc");
  struct stat status{};
  ASSERT_EQ(::stat(installed->path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0555U);
}

TEST_F(GuestProgramTest, AnotherVersionOfTheSameSizeIsAnotherCopy) {
  const auto first = install_guest_program(write("bin/agbox-guest", "abc"), root_ / "state");
  const auto second = install_guest_program(write("bin/agbox-guest", "abd"), root_ / "state");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->path, second->path);
  EXPECT_EQ(read(first->path), "abc");
  EXPECT_EQ(read(second->path), "abd");
  const auto again = install_guest_program(write("bin/agbox-guest", "abc"), root_ / "state");
  EXPECT_EQ(again->path, first->path);
  EXPECT_EQ(again->sha256, first->sha256);
}

TEST_F(GuestProgramTest, IsLeftAloneWhereItIsWholeAndRepairedWhereItIsNot) {
  const fs::path source = write("bin/agbox-guest", "abc");
  const fs::path path = install_guest_program(source, root_ / "state").value().path;
  struct stat first{};
  struct stat second{};
  ASSERT_EQ(::stat(path.c_str(), &first), 0);
  ASSERT_TRUE(install_guest_program(source, root_ / "state"));
  ASSERT_EQ(::stat(path.c_str(), &second), 0);
  EXPECT_EQ(first.st_ino, second.st_ino);
  fs::permissions(path, fs::perms::owner_all);
  std::ofstream(path) << "damaged";
  ASSERT_TRUE(install_guest_program(source, root_ / "state"));
  EXPECT_EQ(read(path), "abc");
}

TEST_F(GuestProgramTest, AMissingSourceIsNamed) {
  const auto missing = install_guest_program(root_ / "nothing", root_ / "state");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message(), HasSubstr("nothing: No such file or directory"));
}

}  // namespace
}  // namespace agbox::guestlink
