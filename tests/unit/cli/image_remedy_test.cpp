// SPDX-License-Identifier: Apache-2.0
#include "cli/image_remedy.h"

#include <gtest/gtest.h>

namespace agbox::cli {
namespace {

TEST(ImageRemedy, NamesWhatBuildsAnImageOfTheProject) {
  EXPECT_EQ(
      image_remedy("pull image ghcr.io/agents-sandbox/coding-runtime:latest: denied"),
      "\n  Build the image:    scripts/build-images coding-runtime, in a clone of the repository"
      "\n  Use another image:  --image IMAGE");
}

TEST(ImageRemedy, NamesTheImageBelowItToo) {
  EXPECT_EQ(
      image_remedy("pull image ghcr.io/agents-sandbox/paseo-runtime@sha256:0: denied"),
      "\n  Build the image:    scripts/build-images coding-runtime paseo-runtime, in a clone of "
      "the repository\n  Use another image:  --image IMAGE");
}

TEST(ImageRemedy, HasNothingToSayAboutOtherImages) {
  EXPECT_EQ(image_remedy("pull image debian:12: denied"), "");
}

}  // namespace
}  // namespace agbox::cli
