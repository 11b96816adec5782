// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "cli/format/printable.h"
#include "unit/cli/captured_console.h"

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

TEST(Console, AReaderThatLeftIsAnError) {
  std::signal(SIGPIPE, SIG_IGN);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd writer(ends[1]);
  ::close(ends[0]);
  Console console(writer.get(), writer.get());
  console.out("text");
  EXPECT_FALSE(console.flush());
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

// What a terminal of `columns` was sent.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) {
    EXPECT_EQ(::grantpt(master_.get()), 0);
    EXPECT_EQ(::unlockpt(master_.get()), 0);
    slave_ = UniqueFd(::open(::ptsname(master_.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(slave_.get(), TIOCSWINSZ, &size), 0);
  }
  int fd() const { return slave_.get(); }
  // The kernel may pass one text on in several pieces.
  void expect(std::string_view text) const {
    std::string received(text.size(), '\0');
    std::size_t size = 0;
    while (size < text.size()) {
      const ssize_t more = ::read(master_.get(), received.data() + size, text.size() - size);
      ASSERT_GT(more, 0);
      size += static_cast<std::size_t>(more);
      ASSERT_EQ(received.substr(0, size), text.substr(0, size));
    }
    int left = 0;
    EXPECT_EQ(::ioctl(master_.get(), FIONREAD, &left), 0);
    EXPECT_EQ(left, 0) << "after " << text;
  }

 private:
  UniqueFd master_{::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
  UniqueFd slave_;
};

TEST(Console, AStatusIsRewrittenByTheNextAndWipedByAMessage) {
  const Terminal terminal(80);
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
  const Terminal terminal(10);
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
