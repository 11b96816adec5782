// SPDX-License-Identifier: Apache-2.0
#include "cli/manual.h"

#include <gmock/gmock.h>

#include "cli/command_line.h"
#include "unit/cli/captured_console.h"

namespace agbox::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Manual, TheManPageHasEveryCommandAndFlag) {
  CommandLine line(all_commands());
  const std::string page = man_page(line.root());
  EXPECT_THAT(page, HasSubstr(".SS agbox run <image> [flags] [\\-\\-] [<command> [args...]]\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n.B \\-q, \\-\\-quiet\nPrint only the sandbox IDs\n"));
  EXPECT_THAT(page, HasSubstr("\n.SS agbox exec run <sandbox_id>"));
  EXPECT_THAT(page, HasSubstr("\n.SS agbox exec list [<sandbox_id>] [flags]\n"));
  EXPECT_THAT(page, HasSubstr("\n.SS agbox paseo ")) << "it is also the parent of paseo url";
  EXPECT_THAT(page, HasSubstr("\n.SS agbox paseo url <sandbox_id>"));
  EXPECT_THAT(page, Not(HasSubstr("\n.SS agbox sandbox [command]"))) << "it only is a parent";
  EXPECT_THAT(page, Not(HasSubstr("agbox manual"))) << "it is not for users";
  EXPECT_THAT(page, Not(HasSubstr("\n'"))) << "roff would take it for a request";
}

TEST(Manual, IsPrintedByACommandThatIsNotListed) {
  CapturedConsole captured;
  CommandLine line(all_commands());
  EXPECT_EQ(line.run({"manual"}, captured.console()), 0);
  EXPECT_EQ(captured.out(), man_page(line.root()));
  CapturedConsole help;
  CommandLine second(all_commands());
  EXPECT_EQ(second.run({"--help"}, help.console()), 0);
  EXPECT_THAT(help.out(), Not(HasSubstr("manual")));
}

}  // namespace
}  // namespace agbox::cli
