// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>

#include "cli/format/printable.h"
#include "unit/cli/captured_console.h"
#include "unit/cli/captured_terminal.h"

namespace agbox::cli {
namespace {

TEST(Console, WritesResultsAtFlushAndMessagesAtOnce) {
  CapturedConsole captured;
  captured.console().out("one ");
  captured.console().out("two\n");
  captured.console().error("oh");
  EXPECT_EQ(captured.out(), "");
  EXPECT_EQ(captured.error(), "oh\n");
  EXPECT_TRUE(captured.console().flush());
  EXPECT_TRUE(captured.console().flush());  // nothing is written twice
  EXPECT_EQ(captured.out(), "one two\n");
}

TEST(Console, AFullDeviceIsAnError) {
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  const UniqueFd errors(::memfd_create("errors", MFD_CLOEXEC));
  Console console(full.get(), errors.get());
  console.out("text");
  EXPECT_FALSE(console.flush());
  std::array<char, 128> text{};
  ASSERT_GT(::pread(errors.get(), text.data(), text.size() - 1, 0), 0);
  EXPECT_STREQ(text.data(), "write to stdout: No space left on device\n");
}

TEST(Console, AReaderThatLeftIsAnErrorWithoutAMessage) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd writer(ends[1]);
  ::close(ends[0]);
  const UniqueFd errors(::memfd_create("errors", MFD_CLOEXEC));
  Console console(writer.get(), errors.get());
  console.out("text");
  EXPECT_FALSE(console.flush());
  EXPECT_EQ(::lseek(errors.get(), 0, SEEK_END), 0);
}

TEST(Console, AFailureIsJsonTooIfTheCommandPrintsJson) {
  CapturedConsole captured;
  captured.console().failure("no");
  EXPECT_TRUE(captured.console().flush());
  EXPECT_EQ(captured.out(), "");
  captured.console().report_failures_as_json();
  captured.console().failure(
      "not \"found\"\x1b",
      {.code = "NOT_FOUND", .reason = "SANDBOX_NOT_FOUND", .metadata = {{"sandbox_id", "box-1"}}});
  EXPECT_TRUE(captured.console().flush());
  EXPECT_EQ(captured.out(),
            "{\"error\": {\"message\": \"not \\\"found\\\"\\u001b\", \"code\": \"NOT_FOUND\", "
            "\"reason\": \"SANDBOX_NOT_FOUND\", \"metadata\": {\"sandbox_id\": \"box-1\"}}}\n");
  EXPECT_EQ(captured.error(), "no\nnot \"found\"\\x1b\n");
}

TEST(Console, APipeThatDoesNotBlockGetsEverything) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  ASSERT_EQ(::fcntl(reader.get(), F_SETFL, 0), 0);
  const std::string text(1 << 20, 'x');  // far more than the pipe holds
  std::string received;
  std::thread reading([&] {
    std::array<char, 4096> chunk{};
    for (ssize_t size = 0; (size = ::read(reader.get(), chunk.data(), chunk.size())) > 0;) {
      received.append(chunk.data(), static_cast<std::size_t>(size));
    }
  });
  Console console(writer.get(), STDERR_FILENO);
  console.out(text);
  EXPECT_TRUE(console.flush());
  writer.reset();
  reading.join();
  EXPECT_EQ(received.size(), text.size());
}

TEST(Console, MessagesCannotDriveTheTerminal) {
  CapturedConsole captured;
  captured.console().error("no such image \x1b]0;owned\x07\x1b[2J");
  EXPECT_EQ(captured.error(), "no such image \\x1b]0;owned\\x07\\x1b[2J\n");
}

TEST(Console, AStatusIsRewrittenByTheNextAndWipedByAMessage) {
  const CapturedTerminal terminal(80);
  Console console(terminal.fd(), terminal.fd());
  ASSERT_TRUE(console.is_terminal());
  console.status("pulling:\n 10 %");
  terminal.expect("\r\x1b[Kpulling: 10 %");
  console.status("pulling: \x1b[2J20 %");
  terminal.expect("\r\x1b[Kpulling: \\x1b[2J20 %");
  console.error("ready");
  terminal.expect("\r\x1b[Kready\r\n");
  console.error("again");
  terminal.expect("again\r\n");
}

TEST(Console, AStatusNeverWraps) {
  const CapturedTerminal terminal(10);
  Console console(terminal.fd(), terminal.fd());
  console.status("0123456789abc");
  terminal.expect("\r\x1b[K012345678");
}

TEST(Console, WithoutATerminalThereIsNoStatus) {
  CapturedConsole captured;
  EXPECT_FALSE(captured.console().is_terminal());
  captured.console().status("pulling");
  captured.console().error("ready");
  EXPECT_EQ(captured.error(), "ready\n");
}

TEST(Printable, ALineCannotPassForSeveral) {
  EXPECT_EQ(printable_line("a\nstate=Ready\r\n\t b \n"), "a state=Ready\\x0d b");
  EXPECT_EQ(printable_line("  "), "");
}

TEST(Printable, KeepsTextAndShowsControls) {
  EXPECT_EQ(printable("Grüße, 世界\tok\n"), "Grüße, 世界\tok\n");
  EXPECT_EQ(printable("a\rb\x7F"), "a\\x0db\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("\xC2\xA9"), "©");
  EXPECT_EQ(printable("\xC2"), "\xC2");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

}  // namespace
}  // namespace agbox::cli
