// SPDX-License-Identifier: Apache-2.0
#include "daemon/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace agbox {
namespace {

using Arguments = std::vector<std::string>;

TEST(Arguments, NoneMeansServe) {
  EXPECT_EQ(parse_arguments(Arguments{}), Invocation::Serve);
}

TEST(Arguments, HelpAndVersionTakePrecedence) {
  EXPECT_EQ(parse_arguments(Arguments{"--help"}), Invocation::ShowHelp);
  EXPECT_EQ(parse_arguments(Arguments{"--version"}), Invocation::ShowVersion);
  EXPECT_EQ(parse_arguments(Arguments{"--socket", "/x", "--help"}), Invocation::ShowHelp);
  EXPECT_EQ(parse_arguments(Arguments{"--version", "x"}), Invocation::ShowVersion);
}

TEST(Arguments, EverythingElseIsRefusedAsGiven) {
  for (const Arguments& arguments : {Arguments{"-h"}, Arguments{"help"}, Arguments{""}}) {
    EXPECT_FALSE(parse_arguments(arguments).has_value());
  }
  EXPECT_EQ(parse_arguments(Arguments{"--socket", "/tmp/x.sock"}).error().message(),
            "agboxd does not accept CLI path overrides: [--socket /tmp/x.sock]");
}

TEST(Arguments, TheHelpIsComplete) {
  for (const char* word : {"agboxd.sock", "config.toml", "setcap", "SIGTERM", "Exit codes"}) {
    EXPECT_THAT(help_text(), testing::HasSubstr(word));
  }
}

}  // namespace
}  // namespace agbox
