// SPDX-License-Identifier: Apache-2.0
// The input of execs: pipes of the daemon, one after the other, into stdin or a terminal.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "unit/guest/execs_fixture.h"

namespace agbox::guest {
namespace {

using testing::HasSubstr;

class ExecsInputTest : public ExecsTest {
 protected:
  ExecOrder with_input(ExecOrder order) {
    order.has_input = true;
    return order;
  }
  ExecOrder in_terminal(ExecOrder order) {
    order.has_input = true;
    order.terminal = TerminalSize{.rows = 30, .columns = 90};
    order.environment.emplace_back("TERM=xterm");
    return order;
  }

  // A pipe for its input, as the daemon attaches one; the writing end.
  UniqueFd attach(const std::string& id) {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    last_ = v1::InputAttached();
    execs_->attach_input(id, ++attaches_, UniqueFd(ends[0]));
    until([this] { return find_report(attaches_); });
    return UniqueFd(ends[1]);
  }
  bool find_report(std::uint64_t number) {
    for (const v1::ToDaemon& message : reported_) {
      if (!message.has_input_attached() || message.input_attached().id() != number) continue;
      last_ = message.input_attached();
      return true;
    }
    return false;
  }
  static void type(const UniqueFd& pipe, std::string_view bytes) {
    ASSERT_EQ(::write(pipe.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void until_out(const std::string& id, const std::string& text) {
    until([&] { return out(id).contains(text); });
  }

  std::uint64_t attaches_ = 0;
  v1::InputAttached last_;
};

TEST_F(ExecsInputTest, WithoutInputStdinIsEmpty) {
  EXPECT_EQ(run("null-1", shell("cat; readlink /proc/self/fd/0")).code(), 0);
  EXPECT_EQ(out("null-1"), "/dev/null\n");
  start("null-2", shell("sleep 60"));
  attach("null-2");
  EXPECT_EQ(last_.outcome(), v1::InputAttached::OUTCOME_CLOSED);
}

TEST_F(ExecsInputTest, ACommandGetsWhatIsWrittenAndItsEnd) {
  start("cat-1", with_input(order_of({"cat"})));
  {
    const UniqueFd pipe = attach("cat-1");
    EXPECT_EQ(last_.outcome(), v1::InputAttached::OUTCOME_ATTACHED);
    EXPECT_EQ(last_.position(), 0U);
    type(pipe, "hello\n");
    until_out("cat-1", "hello\n");
  }
  execs_->end_input("cat-1");
  EXPECT_EQ(wait_end("cat-1").code(), 0);
  EXPECT_EQ(out("cat-1"), "hello\n");
}

// The end of a pipe is only that of its writer: a client that is lost, or a daemon that restarts.
TEST_F(ExecsInputTest, TheNextWriterContinuesWhereTheOneBeforeStopped) {
  start("two-1", with_input(order_of({"cat"})));
  type(attach("two-1"), "first ");
  const UniqueFd pipe = attach("two-1");
  EXPECT_EQ(last_.position(), 6U);
  type(pipe, "second");
  until_out("two-1", "first second");
  EXPECT_EQ(end_of("two-1"), nullptr);
}

TEST_F(ExecsInputTest, WhatAReplacedWriterHasWrittenCountsAndWhatItWritesLaterDoesNot) {
  // Nothing reads, so that all of it waits in the pipes.
  start("late-1", with_input(shell("until [ -e go ]; do sleep 0.01; done; exec cat")));
  const UniqueFd filler = attach("late-1");
  ASSERT_EQ(::fcntl(filler.get(), F_SETFL, O_NONBLOCK), 0);
  std::size_t filled = 0;
  const std::string many(4096, 'f');  // whole pages: smaller pieces would leave room in the pipes
  until([&] {                         // the command's pipe, the runner's hands and our pipe
    const ssize_t written = ::write(filler.get(), many.data(), many.size());
    if (written > 0) filled += static_cast<std::size_t>(written);
    return written < 0 && filled > 128'000;
  });
  const UniqueFd pipe = attach("late-1");
  EXPECT_EQ(last_.position(), filled);
  type(pipe, "END");
  ASSERT_EQ(::creat((directory() / "go").c_str(), 0600) < 0, false);
  until_out("late-1", "END");
  EXPECT_EQ(out("late-1").size(), filled + 3);
}

TEST_F(ExecsInputTest, AnInputThatTheRunnerDidNotTakeAnyMoreIsClosed) {
  ExecOrder order = shell("");
  order.command = {"/nonexistent"};
  start("gone-1", with_input(std::move(order)));
  attach("gone-1");  // on its way while the command fails to start
  EXPECT_EQ(last_.outcome(), v1::InputAttached::OUTCOME_CLOSED);
}

TEST_F(ExecsInputTest, TheInputOfACommandWhoseEndIsNotReadYetIsClosed) {
  start("gone-2", with_input(shell("true")));
  siginfo_t runner{};
  ASSERT_EQ(::waitid(P_ALL, 0, &runner, WEXITED | WNOWAIT), 0);
  attach("gone-2");
  EXPECT_EQ(last_.outcome(), v1::InputAttached::OUTCOME_CLOSED);
}

TEST_F(ExecsInputTest, MuchInputArrivesUnchanged) {
  start("much-1", with_input(shell("cat > copy; sync copy")));
  std::string sent;
  for (int i = 0; sent.size() < 3'000'000; ++i) sent += std::to_string(i) + "\n";
  {
    const UniqueFd pipe = attach("much-1");
    ASSERT_EQ(::fcntl(pipe.get(), F_SETFL, O_NONBLOCK), 0);
    std::string_view left = sent;
    until([&] {
      const ssize_t written = ::write(pipe.get(), left.data(), left.size());
      if (written > 0) left.remove_prefix(static_cast<std::size_t>(written));
      return left.empty();
    });
  }
  execs_->end_input("much-1");
  EXPECT_EQ(wait_end("much-1").code(), 0);
  EXPECT_TRUE(read("copy") == sent);
}

TEST_F(ExecsInputTest, ACommandThatStopsReadingClosesTheInput) {
  start("deaf-1", with_input(shell("exec <&-; echo deaf; sleep 60")));
  const UniqueFd pipe = attach("deaf-1");
  until_out("deaf-1", "deaf");
  until([&] {
    attach("deaf-1");
    return last_.outcome() == v1::InputAttached::OUTCOME_CLOSED;
  });
  EXPECT_EQ(end_of("deaf-1"), nullptr);
}

TEST_F(ExecsInputTest, AnUnknownOrEndedExecTakesNone) {
  attach("none-1");
  EXPECT_EQ(last_.outcome(), v1::InputAttached::OUTCOME_CLOSED);
  EXPECT_EQ(run("over-1", with_input(order_of({"true"}))).code(), 0);
  attach("over-1");
  EXPECT_EQ(last_.outcome(), v1::InputAttached::OUTCOME_CLOSED);
  execs_->end_input("over-1");
  execs_->resize_terminal("over-1", {1, 1});
  execs_->signal("over-1", SIGTERM);
}

TEST_F(ExecsInputTest, NothingIsReportedToAnotherConnection) {
  start("gone-1", with_input(order_of({"cat"})));
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd pipe(ends[1]);
  execs_->attach_input("gone-1", 99, UniqueFd(ends[0]));
  execs_->cancel_attaches();
  type(pipe, "arrives");
  until_out("gone-1", "arrives");
  EXPECT_FALSE(find_report(99));
}

TEST_F(ExecsInputTest, ASignalReachesTheCommandsGroup) {
  start("signal-1",
        shell("trap 'echo usr1; exit 7' USR1; echo ready; while :; do sleep 0.01; done"));
  until_out("signal-1", "ready");
  execs_->signal("signal-1", SIGUSR1);
  EXPECT_EQ(wait_end("signal-1").code(), 7);
  EXPECT_THAT(out("signal-1"), HasSubstr("usr1"));
}

// --- terminals ---

TEST_F(ExecsInputTest, ACommandInATerminalHasOneOfItsSize) {
  EXPECT_EQ(run("tty-1", in_terminal(shell("tty > /dev/null && stty size && stat -Lc %u /dev/fd/0; "
                                           "echo err >&2")))
                .code(),
            0);
  EXPECT_EQ(out("tty-1"), "30 90\r\n" + std::to_string(uid()) + "\r\nerr\r\n");
  EXPECT_EQ(err("tty-1"), "");
}

TEST_F(ExecsInputTest, AResizeIsSeenByTheForeground) {
  start(
      "size-1",
      in_terminal(shell("trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done")));
  until_out("size-1", "ready");
  execs_->resize_terminal("size-1", {.rows = 41, .columns = 102});
  EXPECT_EQ(wait_end("size-1").code(), 0);
  EXPECT_THAT(out("size-1"), HasSubstr("41 102"));
}

TEST_F(ExecsInputTest, KeysAreEchoedAndCtrlCInterruptsTheForegroundOnly) {
  start("keys-1", in_terminal(order_of({"/bin/sh", "-i"})));
  const UniqueFd pipe = attach("keys-1");
  type(pipe, "echo $((20 + 3))\n");
  until_out("keys-1", "23\r\n");
  EXPECT_THAT(out("keys-1"), HasSubstr("echo $((20 + 3))"));
  type(pipe, "sh -c 'echo begun; sleep 60'\n");
  until_out("keys-1", "begun\r\n");
  type(pipe, "\x03");
  type(pipe, "echo status $?\n");
  until_out("keys-1", "status 130\r\n");
  type(pipe, "exit 4\n");
  EXPECT_EQ(wait_end("keys-1").code(), 4);
}

TEST_F(ExecsInputTest, TheEndOfInputIsCtrlDInATerminal) {
  start("eof-1", in_terminal(order_of({"cat"})));
  {
    type(attach("eof-1"), "line\n");
  }
  execs_->end_input("eof-1");
  EXPECT_EQ(wait_end("eof-1").code(), 0);
  EXPECT_EQ(out("eof-1"), "line\r\nline\r\n");
}

TEST_F(ExecsInputTest, ATerminalOutlivesItsWriters) {
  start("lost-1", in_terminal(order_of({"cat"})));
  type(attach("lost-1"), "one\n");
  until_out("lost-1", "one\r\none\r\n");
  const UniqueFd pipe = attach("lost-1");
  EXPECT_EQ(last_.position(), 4U);
  type(pipe, "two\n");
  until_out("lost-1", "two\r\ntwo\r\n");
  EXPECT_EQ(end_of("lost-1"), nullptr);
}

TEST_F(ExecsInputTest, ACommandMayCloseItsTerminalForAWhile) {
  EXPECT_EQ(
      run("away-1", in_terminal(shell("t=$(tty); exec <&- >&- 2>&-; sleep 0.2; echo back > $t")))
          .code(),
      0);
  EXPECT_EQ(out("away-1"), "back\r\n");
}

TEST_F(ExecsInputTest, AllThatACommandPrintedIsInTheFileWhenItEnds) {
  EXPECT_EQ(run("full-1", in_terminal(shell("seq 1 20000"))).code(), 0);
  EXPECT_THAT(out("full-1"), testing::EndsWith("19999\r\n20000\r\n"));
  EXPECT_EQ(std::ranges::count(out("full-1"), '\n'), 20000);
}

// A shell ignores SIGTERM while it is interactive, but not the loss of its terminal.
TEST_F(ExecsInputTest, ACancelHangsUpTheTerminal) {
  start("hang-1", in_terminal(order_of({"/bin/sh", "-i"})));
  type(attach("hang-1"), "echo up; sleep 60\n");
  until_out("hang-1", "up\r\n");
  const auto before = Clock::now();
  execs_->cancel("hang-1", std::chrono::seconds(30));
  EXPECT_EQ(wait_end("hang-1").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(20));
  until_all_is_gone();
}

TEST_F(ExecsInputTest, ABackgroundProcessKeepsTheTerminal) {
  EXPECT_EQ(
      run("back-1", in_terminal(shell("trap '' HUP; (sleep 0.3; echo later) & echo now"))).code(),
      0);
  until_all_is_gone();
  EXPECT_EQ(out("back-1"), "now\r\nlater\r\n");
}

}  // namespace
}  // namespace agbox::guest
