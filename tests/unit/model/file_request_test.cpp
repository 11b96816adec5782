// SPDX-License-Identifier: Apache-2.0
#include "model/files/file_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace agbox {
namespace {

using testing::HasSubstr;

v1::CopyInTarget target(const std::string& path) {
  v1::CopyInTarget target;
  target.set_sandbox_id("s1");
  target.set_path(path);
  return target;
}

TEST(FileRequest, PathsAreAbsoluteOrBelowTheHome) {
  EXPECT_EQ(parse_copy_in(target("/a/../b")).value().path, "/a/../b");
  EXPECT_EQ(parse_copy_in(target("~")).value().path, "/home/agbox");
  EXPECT_EQ(parse_copy_in(target("~/x/")).value().path, "/home/agbox/x/");
  for (const char* path : {"", "x", "./x", "~x"}) {
    const auto refused = parse_copy_in(target(path));
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("path: "));
  }
  EXPECT_FALSE(parse_copy_in(target(std::string("/a\0b", 4))));
  EXPECT_TRUE(parse_copy_in(target("/" + std::string(4094, 'x'))));
  EXPECT_FALSE(parse_copy_in(target("/" + std::string(4095, 'x'))));
}

TEST(FileRequest, EverythingElseIsPassedOn) {
  v1::CopyInTarget in = target("/x");
  EXPECT_FALSE(parse_copy_in(in).value().is_content);
  in.set_placement(v1::COPY_PLACEMENT_CONTENT);
  in.set_as_root(true);
  EXPECT_TRUE(parse_copy_in(in).value().is_content);
  EXPECT_TRUE(parse_copy_in(in).value().as_root);
  in.set_placement(static_cast<v1::CopyPlacement>(9));
  EXPECT_THAT(parse_copy_in(in).error().message(), HasSubstr("placement: "));
  in.clear_sandbox_id();
  EXPECT_THAT(parse_copy_in(in).error().message(), HasSubstr("sandbox_id: "));
  v1::CopyOutRequest out;
  EXPECT_THAT(parse_copy_out(out).error().message(), HasSubstr("sandbox_id: "));
  out.set_sandbox_id("s1");
  EXPECT_THAT(parse_copy_out(out).error().message(), HasSubstr("path: "));
  out.set_path("~/x/.");
  EXPECT_EQ(parse_copy_out(out).value().path, "/home/agbox/x/.");
  EXPECT_EQ(parse_copy_out(out).value().direction, FileOrder::Direction::Out);
}

}  // namespace
}  // namespace agbox
