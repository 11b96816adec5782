// SPDX-License-Identifier: Apache-2.0
#include "cli/format/table.h"

#include <gtest/gtest.h>

namespace agbox::cli {
namespace {

Table table() {
  Table table({"ID", "IMAGE", "COMMAND"});
  table.add({"0123456789", "debian:12", "sh -c 'grün und blau'"});
  table.add({"1", "x", ""});
  return table;
}

TEST(Table, WithoutATerminalNothingIsCut) {
  EXPECT_EQ(table().text(),
            "ID          IMAGE      COMMAND\n"
            "0123456789  debian:12  sh -c 'grün und blau'\n"
            "1           x          \n");
}

TEST(Table, TheWidestColumnsAreCutToTheTerminal) {
  EXPECT_EQ(table().text(35),
            "ID          IMAGE      COMMAND\n"
            "0123456789  debian:12  sh -c 'grün…\n"
            "1           x          \n");
  EXPECT_EQ(table().text(44), table().text());
}

TEST(Table, ANarrowTerminalStillShowsIds) {
  EXPECT_EQ(table().text(20),
            "ID          IMAGE   COMMA…\n"
            "0123456789  debia…  sh -c…\n"
            "1           x       \n");
}

}  // namespace
}  // namespace agbox::cli
