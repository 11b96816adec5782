// SPDX-License-Identifier: Apache-2.0
#include "model/copy/path_pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace agbox {
namespace {

struct PatternRow {
  std::string_view pattern;
  std::string_view path;
  bool matches;
};

// The table of Go's own test of filepath.Match, where it does not fail.
TEST(PathPatternTest, MatchesAsGoDoes) {
  const PatternRow rows[] = {
      {"abc", "abc", true},
      {"*", "abc", true},
      {"*c", "abc", true},
      {"a*", "a", true},
      {"a*", "abc", true},
      {"a*", "ab/c", false},
      {"a*/b", "abc/b", true},
      {"a*/b", "a/c/b", false},
      {"a*b*c*d*e*/f", "axbxcxdxe/f", true},
      {"a*b*c*d*e*/f", "axbxcxdxexxx/f", true},
      {"a*b*c*d*e*/f", "axbxcxdxe/xxx/f", false},
      {"a*b*c*d*e*/f", "axbxcxdxexxx/fff", false},
      {"a*b?c*x", "abxbbxdbxebxczzx", true},
      {"a*b?c*x", "abxbbxdbxebxczzy", false},
      {"ab[c]", "abc", true},
      {"ab[b-d]", "abc", true},
      {"ab[e-g]", "abc", false},
      {"ab[^c]", "abc", false},
      {"ab[^b-d]", "abc", false},
      {"ab[^e-g]", "abc", true},
      {"a\\*b", "a*b", true},
      {"a\\*b", "ab", false},
      {"a?b", "a\u263ab", true},
      {"a[^a]b", "a\u263ab", true},
      {"a???b", "a\u263ab", false},
      {"a[^a][^a][^a]b", "a\u263ab", false},
      {"[a-\u03b6]*", "\u03b1", true},
      {"*[a-\u03b6]", "A", false},
      {"a?b", "a/b", false},
      {"a*b", "a/b", false},
      {"[\\]a]", "]", true},
      {"[\\-]", "-", true},
      {"[x\\-]", "x", true},
      {"[x\\-]", "-", true},
      {"[x\\-]", "z", false},
      {"[\\-x]", "x", true},
      {"[\\-x]", "a", false},
      {"*x", "xxx", true},
      {"", "", true},
      {"", "a", false},
      {"*", "", true},
      {"?", "", false},
      {"a?", "a\xff", true},  // not UTF-8: one byte is one character
  };
  for (const PatternRow& row : rows) {
    EXPECT_TRUE(is_path_pattern(row.pattern)) << row.pattern;
    EXPECT_EQ(matches_path(row.pattern, row.path), row.matches) << row.pattern << " " << row.path;
  }
}

TEST(PathPatternTest, MalformedPatternsMatchNothing) {
  for (const std::string_view pattern : {"[]a]", "[-]", "[x-]", "[-x]", "\\", "[a-b-c]", "[", "[^",
                                         "[^bc", "a[", "[]", "a*[", "[a"}) {
    EXPECT_FALSE(is_path_pattern(pattern)) << pattern;
    for (const std::string_view path : {"a", "-", "]", "ab", "x", "[", "[]", "\\"}) {
      EXPECT_FALSE(matches_path(pattern, path)) << pattern << " " << path;
    }
  }
}

TEST(PathPatternTest, TwoStarsMatchAnyNumberOfComponents) {
  const PatternRow rows[] = {
      {"**", "a", true},
      {"**", "a/b/c", true},
      {"**/node_modules", "node_modules", true},
      {"**/node_modules", "a/b/node_modules", true},
      {"**/node_modules", "a/node_modules/b", false},
      {"build/**", "build/a/b", true},
      {"build/**", "build", true},
      {"build/**", "rebuild/a", false},
      {"a/**/z", "a/z", true},
      {"a/**/z", "a/b/c/z", true},
      {"a/**/z", "a/b/c/y", false},
      {"a/**/b/**/c", "a/b/b/x/c", true},
      {"**/*.o", "src/x/main.o", true},
      {"**/*.o", "src/x/main.c", false},
      {"a**", "abc", true},
      {"a**", "ab/c", false},
  };
  for (const PatternRow& row : rows) {
    EXPECT_EQ(matches_path(row.pattern, row.path), row.matches) << row.pattern << " " << row.path;
  }
}

// A pattern of an attacker must not take longer than its length times that of the path.
TEST(PathPatternTest, ManyStarsEndSoon) {
  std::string pattern;
  for (int i = 0; i < 500; ++i) pattern += "*a";
  EXPECT_FALSE(matches_path(pattern + "b", std::string(4000, 'a')));
  std::string deep;
  for (int i = 0; i < 500; ++i) deep += "**/a/";
  std::string path;
  for (int i = 0; i < 2000; ++i) path += "a/";
  EXPECT_FALSE(matches_path(deep + "b", path + "a"));
}

}  // namespace
}  // namespace agbox
