// SPDX-License-Identifier: Apache-2.0
#include "model/copy/gitignore.h"

#include <gtest/gtest.h>

#include <string>

namespace agbox {
namespace {

struct IgnoreRow {
  std::string_view text;
  std::string_view path;
  bool matches;
};

TEST(GitignoreTest, MatchesAtAnyDepthUnlessAnchored) {
  const IgnoreRow rows[] = {
      {"", "a", false},
      {"# comment", "# comment", false},
      {"   ", "a", false},
      {"venv", "venv", true},
      {"venv", "venv/", true},
      {"venv", "venv/bin/python", true},
      {"venv", "sub/venv", true},
      {"venv", "venvs", false},
      {"venv", "a-venv", false},
      {"/venv", "venv/", true},
      {"/venv", "sub/venv/", false},
      {".venv/", ".venv/", true},
      {".venv/", ".venv/bin/python", true},
      {".venv/", ".venv", false},  // of a file: only a directory has the slash
      {".venv/", "xvenv/", false},
      {"  .venv/ \r", ".venv/", true},
      {"*.pyc", "a/b.pyc", true},
      {"*.pyc", "a/b.pyx", false},
      {"a*c", "abbc", true},
      {"a*c", "a/c", false},
      {"a?c", "abc", false},  // an ordinary character
      {"a?c", "a?c", true},
      {"a.c", "abc", false},
      {"[Bb]in/", "Bin/", true},
      {"[Bb]in/", "bin/x", true},
      {"[^b]in", "bin", false},
      {"*.py[cod]", "x.pyo", true},
      {"[a-c]x", "bx", true},
      {"[a-c]x", "dx", false},
      {"\\#x", "#x", true},
      {"\\!x", "!x", true},
      {"a\\*", "a*", true},
      {"a\\*", "ab", false},
      // With *. after a slash it belongs to the root.
      {"foo/*.x", "foo/a.x", true},
      {"foo/*.x", "sub/foo/a.x", false},
      {"foo/bar", "sub/foo/bar", true},
      {"**/foo", "foo", true},
      {"**/foo", "a/b/foo", true},
      {"/**/foo", "a/b/foo", true},
      {"foo/**", "foo", true},
      {"foo/**", "foo/a/b", true},
      {"a/**/b", "a/b", true},
      {"a/**/b", "a/x/y/b", true},
      {"a/**/b", "ab", false},
      {"x[", "x[", true},  // not a class
  };
  for (const IgnoreRow& row : rows) {
    EXPECT_EQ(Gitignore(row.text).matches(row.path), row.matches) << row.text << " " << row.path;
  }
}

TEST(GitignoreTest, TheLastLineThatMatchesDecides) {
  const Gitignore gitignore("*.link\n!keep.link\nkeep.link.d\n");
  EXPECT_TRUE(gitignore.matches("a.link"));
  EXPECT_FALSE(gitignore.matches("keep.link"));
  EXPECT_TRUE(gitignore.matches("keep.link.d"));
  EXPECT_TRUE(Gitignore("!a\na").matches("a"));
}

TEST(GitignoreTest, LinesThatSayNothingAreEmpty) {
  EXPECT_TRUE(Gitignore("\n\r\n# x\n!\n/\n").is_empty());
  EXPECT_FALSE(Gitignore("a").is_empty());
}

TEST(GitignoreTest, ManyStarsEndSoon) {
  std::string line;
  for (int i = 0; i < 200; ++i) line += "*a";
  EXPECT_FALSE(Gitignore(line + "b").matches(std::string(4000, 'a')));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "**/";
  EXPECT_FALSE(Gitignore(deep + "b").matches(std::string(2000, '/') + "a"));
}

}  // namespace
}  // namespace agbox
