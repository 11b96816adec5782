// SPDX-License-Identifier: Apache-2.0
#include "model/copy/exclude_patterns.h"

#include <gtest/gtest.h>

namespace agbox {
namespace {

TEST(ExcludePatternsTest, NoPatternExcludesNothing) {
  EXPECT_FALSE(ExcludePatterns().excludes("a"));
  EXPECT_FALSE(ExcludePatterns({""}).excludes("a"));
}

TEST(ExcludePatternsTest, APatternIsComparedWithThePathAndWithTheName) {
  const ExcludePatterns patterns({"*.log", "build/out"});
  EXPECT_TRUE(patterns.excludes("a.log"));
  EXPECT_TRUE(patterns.excludes("deep/down/a.log"));
  EXPECT_TRUE(patterns.excludes("build/out"));
  EXPECT_FALSE(patterns.excludes("other/build/out"));
  EXPECT_FALSE(patterns.excludes("a.log.txt"));
}

TEST(ExcludePatternsTest, ASlashAtTheEndMatchesNothing) {
  EXPECT_FALSE(ExcludePatterns({"build/"}).excludes("build"));
}

TEST(ExcludePatternsTest, TheLastMatchDecides) {
  const ExcludePatterns patterns({"*.env", "!example.env"});
  EXPECT_TRUE(patterns.excludes("prod.env"));
  EXPECT_FALSE(patterns.excludes("example.env"));
  EXPECT_FALSE(patterns.excludes("sub/example.env"));
  EXPECT_TRUE(ExcludePatterns({"!example.env", "*.env"}).excludes("example.env"));
}

TEST(ExcludePatternsTest, ALeadingExclamationMarkCanBeEscaped) {
  EXPECT_TRUE(ExcludePatterns({"\\!important"}).excludes("!important"));
}

TEST(ExcludePatternsTest, MalformedPatternsHaveNoEffect) {
  const ExcludePatterns patterns({"[", "*.o", "![a"});
  EXPECT_FALSE(patterns.excludes("["));
  EXPECT_TRUE(patterns.excludes("x.o"));
}

}  // namespace
}  // namespace agbox
