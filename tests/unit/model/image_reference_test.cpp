// SPDX-License-Identifier: Apache-2.0
#include "model/spec/image_reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

const std::string kDigest = "sha256:" + std::string(64, 'a');

TEST(ImageReference, EverySpellingHasOneCanonicalForm) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"busybox", "docker.io/library/busybox:latest"},
      {"busybox:1.36", "docker.io/library/busybox:1.36"},
      {"library/busybox", "docker.io/library/busybox:latest"},
      {"docker.io/busybox", "docker.io/library/busybox:latest"},
      {"index.docker.io/busybox:1", "docker.io/library/busybox:1"},
      {"team/image", "docker.io/team/image:latest"},
      {"localhost/image", "localhost/image:latest"},
      {"localhost:5000/image", "localhost:5000/image:latest"},
      {"127.0.0.1:5000/a/b/c:T_a.g-1", "127.0.0.1:5000/a/b/c:T_a.g-1"},
      {"[::1]:5000/image", "[::1]:5000/image:latest"},
      {"Registry.example/image", "Registry.example/image:latest"},
      {"ghcr.io/x/a__b.c---d", "ghcr.io/x/a__b.c---d:latest"},
      {"busybox@" + kDigest, "docker.io/library/busybox@" + kDigest},
      {"busybox:1@" + kDigest, "docker.io/library/busybox:1@" + kDigest},
      {"3f53bb00af94", "docker.io/library/3f53bb00af94:latest"},
  };
  for (const auto& [written, canonical] : rows) {
    const auto reference = parse_image_reference(written);
    ASSERT_TRUE(reference) << reference.error().message();
    EXPECT_EQ(reference->canonical(), canonical);
    EXPECT_EQ(parse_image_reference(canonical)->canonical(), canonical);
  }
}

TEST(ImageReference, WhatIsNoneIsRefusedByName) {
  const std::vector<std::string> wrong = {"",
                                          " ",
                                          "Busybox",
                                          "busybox:",
                                          ":tag",
                                          "a//b",
                                          "/a",
                                          "a/",
                                          "a/../b",
                                          "..",
                                          "a b",
                                          "busy\nbox",
                                          "busybox:ta g",
                                          "a___b",
                                          "a._b",
                                          "-a",
                                          "a-",
                                          "busybox@sha256:12",
                                          "busybox@" + kDigest + "Z",
                                          "host:port/image",
                                          "http://x/y",
                                          "a?b=c",
                                          "a#b",
                                          "a%2fb",
                                          "image:" + std::string(129, 't'),
                                          std::string(300, 'a')};
  for (const std::string& written : wrong) {
    const auto reference = parse_image_reference(written);
    ASSERT_FALSE(reference) << written;
    EXPECT_EQ(reference.error().reason(), reason::kInvalidArgument);
    EXPECT_THAT(reference.error().message(), HasSubstr("image '" + written.substr(0, 300) + "'"));
  }
}

TEST(ImageReference, DockerHubsCredentialsAreUnderItsOldAddress) {
  EXPECT_EQ(parse_image_reference("busybox")->credentials_key(), "https://index.docker.io/v1/");
  EXPECT_EQ(parse_image_reference("ghcr.io/a/b")->credentials_key(), "ghcr.io");
}

TEST(ImageReference, AnIdIsNoReferenceThatCanBePulled) {
  EXPECT_TRUE(is_image_id(kDigest));
  EXPECT_FALSE(is_image_id("busybox"));
  EXPECT_FALSE(is_image_id("sha256:12"));
}

}  // namespace
}  // namespace agbox
