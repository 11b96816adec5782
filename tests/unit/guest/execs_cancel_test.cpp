// SPDX-License-Identifier: Apache-2.0
// Cancelling process trees that resist; and runners that are killed.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "guest/execs.h"
#include "unit/guest/execs_fixture.h"

namespace agbox::guest {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

bool is_zombie(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text.contains(") Z ");
}

TEST_F(ExecsTest, ACancelSendsSigtermFirst) {
  start("e", shell("trap 'echo bye; exit 0' TERM; : >up; while :; do sleep 0.01; done"));
  until([this] { return exists("up"); });
  execs_->cancel("e", milliseconds(60'000));
  const auto end = wait_end("e");
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_EQ(end.code(), 0);
  EXPECT_EQ(out("e"), "bye\n");
}

TEST_F(ExecsTest, ACancelReachesDoubleForksAndNewSessions) {
  start("e", shell("(setsid sh -c '(sleep 1000 &) ; sleep 1000 & wait' &) ; (sleep 1000 &) ; "
                   "setsid setsid sleep 1000 & sleep 1000"));
  until([] { return alive("sleep").size() == 5; });
  execs_->cancel("e", milliseconds(60'000));
  execs_->cancel("e", milliseconds(0));  // a second one changes nothing
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_THAT(alive(), IsEmpty());
  EXPECT_THAT(reported_, SizeIs(1));
}

TEST_F(ExecsTest, AnUnresponsiveProcessIsKilledAfterTheGracePeriod) {
  start("e", shell("trap '' TERM; sleep 1000 & : >up; while :; do sleep 1000; done"));
  until([this] { return exists("up"); });
  const auto before = Clock::now();
  execs_->cancel("e", milliseconds(300));
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_GE(Clock::now() - before, milliseconds(300));
  EXPECT_THAT(alive(), IsEmpty());
}

// Both run only while a file of the test exists.
TEST_F(ExecsTest, AForkBombIsKilled) {
  // Each forks more, up to the limit, and ignores signals.
  start("e", order_of({"perl", "-e",
                       "$SIG{TERM} = 'IGNORE'; while (-e \"$ENV{FOLDER}/alive\") { fork }"}));
  until([] { return alive().size() >= 250; });
  execs_->cancel("e", milliseconds(50));
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_THAT(alive(), IsEmpty());
}

TEST_F(ExecsTest, AProcessThatKeepsForkingAwayIsKilled) {
  // Each process is gone when inspected: it continues in its child.
  start("e", shell("trap '' TERM; hop() { [ -e $FOLDER/alive ] && hop & }; hop; hop; sleep 1000"));
  until([] { return alive().size() >= 2; });
  execs_->cancel("e", milliseconds(20));
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_THAT(alive(), IsEmpty());
}

TEST_F(ExecsTest, ManyCancelsAtOnceAreQuick) {
  for (int i = 0; i < 60; ++i) start("e" + std::to_string(i), shell("sleep 1000 & wait"));
  until([] { return alive("sleep").size() == 60; });
  const auto before = Clock::now();
  for (int i = 0; i < 60; ++i) execs_->cancel("e" + std::to_string(i), milliseconds(60'000));
  for (int i = 0; i < 60; ++i) {
    EXPECT_EQ(wait_end("e" + std::to_string(i)).how(), v1::ExecEnded::HOW_CANCELLED);
  }
  EXPECT_LT(Clock::now() - before, std::chrono::seconds(10));
  EXPECT_THAT(alive(), IsEmpty());
}

TEST_F(ExecsTest, ACancelOfOneLeavesTheOthersAlone) {
  start("a", order_of({"sleep", "1000"}));
  start("b", order_of({"sleep", "1000"}));
  until([] { return alive("sleep").size() == 2; });
  execs_->cancel("a", milliseconds(0));
  wait_end("a");
  EXPECT_EQ(end_of("b"), nullptr);
  EXPECT_FALSE(alive().empty());
}

TEST_F(ExecsTest, ACancelBeforeTheStartPreventsIt) {
  std::array<int, 2> gate;
  ASSERT_EQ(::pipe2(gate.data(), O_CLOEXEC), 0);
  in_runner_ = [&] {
    char byte = 0;
    while (::read(gate[0], &byte, 1) < 0) {
    }
  };
  start("e", shell(": >ran"));
  execs_->cancel("e", milliseconds(60'000));
  ASSERT_EQ(::write(gate[1], "x", 1), 1);
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  until_all_is_gone();
  EXPECT_FALSE(exists("ran"));
  ::close(gate[0]);
  ::close(gate[1]);
}

TEST_F(ExecsTest, ACancelAfterTheEndChangesNothing) {
  EXPECT_EQ(run("e", shell("sleep 1000 & exit 6")).code(), 6);
  execs_->cancel("e", milliseconds(0));
  execs_->cancel("unknown", milliseconds(0));
  for (int i = 0; i < 20; ++i) round(milliseconds(5));
  EXPECT_THAT(reported_, SizeIs(1));
  EXPECT_THAT(alive(), SizeIs(1));
}

TEST_F(ExecsTest, ACancelWakesAStoppedRunner) {
  start("e", order_of({"sleep", "1000"}));
  until([] { return alive("sleep").size() == 1; });
  ::kill(runners().at(0), SIGSTOP);
  execs_->cancel("e", milliseconds(60'000));
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
}

TEST_F(ExecsTest, ARunnerThatCannotTakeTheCancelDoesNotPreventIt) {
  std::array<int, 2> log;
  ASSERT_EQ(::pipe2(log.data(), O_CLOEXEC), 0);
  UniqueFd reader(log[0]);
  const UniqueFd writer(::fcntl(log[1], F_DUPFD_CLOEXEC, 0));
  ExecOrder order = shell("trap '' TERM; (setsid yes &) ; : >up; exec yes");
  order.files.out.reset(log[1]);
  start("e", std::move(order));
  // The runner blocks as soon as its log, a pipe, is full.
  until([&] {
    pollfd writable{writer.get(), POLLOUT, 0};
    return ::poll(&writable, 1, 0) == 0;
  });
  execs_->cancel("e", milliseconds(0));
  until([] { return std::ranges::all_of(alive(), is_zombie); });
  EXPECT_EQ(end_of("e"), nullptr);
  reader.reset();
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_THAT(alive(), IsEmpty());
  until_all_is_gone();
  EXPECT_THAT(reported_, SizeIs(2)) << "truncated, and one end";
}

TEST_F(ExecsTest, AKilledRunnersTreeIsKilled) {
  start("other", order_of({"sleep", "1000"}));
  until([] { return alive("sleep").size() == 1; });
  const pid_t others = runners().at(0);
  start("e", shell("(setsid sh -c 'sleep 1000 & wait' &); trap '' TERM; sleep 1000 & wait"));
  until([] { return alive("sleep").size() == 3; });
  std::vector<pid_t> own = runners();
  std::erase(own, others);
  ASSERT_THAT(own, SizeIs(1));
  ::kill(own[0], SIGKILL);
  const auto end = wait_end("e");
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_RUNNER_LOST);
  EXPECT_EQ(end.code(), SIGKILL);
  EXPECT_THAT(end.detail(), HasSubstr("ended by signal 9"));
  EXPECT_THAT(alive(), SizeIs(1));
  EXPECT_EQ(end_of("other"), nullptr);
}

TEST_F(ExecsTest, ForeignProcessesSurviveALostRunner) {
  // Stands in for a daemon of the image: a child of ours, in a session that is not an exec's.
  const auto foreign = start_child(
      {.arguments = {"sleep", "1000"}, .environment = {"PATH=/usr/bin:/bin"}, .identity = user_});
  ASSERT_TRUE(foreign);
  is_foreign_ = [&](const Process& process) { return process.session == *foreign; };
  start("e", order_of({"sleep", "1000"}));
  until([] { return alive("sleep").size() == 2; });
  ::kill(runners().at(0), SIGKILL);
  wait_end("e");
  EXPECT_THAT(alive(), testing::ElementsAre(*foreign));
}

TEST_F(ExecsTest, ARunnerKilledDuringACancelCountsAsCancelled) {
  start("e", shell("trap '' TERM; : >up; while :; do sleep 1000; done"));
  until([this] { return exists("up"); });
  execs_->cancel("e", milliseconds(60'000));
  round(milliseconds(100));
  round(milliseconds(100));
  ::kill(runners().at(0), SIGKILL);
  EXPECT_EQ(wait_end("e").how(), v1::ExecEnded::HOW_CANCELLED);
  EXPECT_THAT(alive(), IsEmpty());
}

TEST_F(ExecsTest, ARunnerKilledAfterTheEndDoesNotMatter) {
  run("e", shell("sleep 1000 & exit 0"));
  ::kill(runners().at(0), SIGKILL);
  until_all_is_gone();
  EXPECT_THAT(reported_, SizeIs(1));
  EXPECT_THAT(alive(), SizeIs(1));
}

}  // namespace
}  // namespace agbox::guest
