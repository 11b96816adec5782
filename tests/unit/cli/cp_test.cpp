// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <variant>

#include "cli/copy_location.h"
#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::HasSubstr;

TEST(CopyLocation, APathOfASandboxHasItsIdBeforeAColon) {
  const auto found = parse_copy_location("box-1:/a:b/c");
  ASSERT_TRUE(found && std::holds_alternative<SandboxPath>(*found));
  EXPECT_EQ(std::get<SandboxPath>(*found).sandbox_id, "box-1");
  EXPECT_EQ(std::get<SandboxPath>(*found).path, "/a:b/c");
  EXPECT_TRUE(std::holds_alternative<SandboxPath>(parse_copy_location("box:~/x").value()));
  for (const char* bad : {"", ":/x", "box:", "box:x", "box:~x"}) {
    EXPECT_FALSE(parse_copy_location(bad)) << bad;
  }
  EXPECT_THAT(parse_copy_location("box:x").error(), HasSubstr("box:/workspace/x"));
}

TEST(CopyLocation, EverythingElseIsOfThisMachine) {
  for (const char* path : {"x", "/x:y", "./x:y", "../x:y", "a/b:c", "."}) {
    const auto found = parse_copy_location(path);
    ASSERT_TRUE(found && std::holds_alternative<LocalPath>(*found)) << path;
    EXPECT_EQ(std::get<LocalPath>(*found).path, path);
  }
  EXPECT_TRUE(std::holds_alternative<TarStream>(parse_copy_location("-").value()));
}

class Cp : public Commands {};

TEST_F(Cp, OneSideIsASandbox) {
  EXPECT_EQ(run({"cp", "a", "b"}), kUsageError);
  EXPECT_THAT(error_, HasSubstr("one path must be SANDBOX:PATH"));
  EXPECT_EQ(run({"cp", "-", "b"}), kUsageError);
  EXPECT_EQ(run({"cp", "box:/a", "box:/b"}), kUsageError);
  EXPECT_THAT(error_, HasSubstr("agbox cp SANDBOX:PATH - |"));
  EXPECT_EQ(run({"cp", "a"}), kUsageError);
  EXPECT_EQ(run({"cp", "a", "box:b"}), kUsageError);
  EXPECT_THAT(error_, HasSubstr("must be absolute"));
  EXPECT_EQ(run({"cp", "--json", "box:/a", "-"}), kUsageError);
}

}  // namespace
}  // namespace agbox::cli
