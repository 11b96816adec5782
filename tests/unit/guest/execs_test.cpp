// SPDX-License-Identifier: Apache-2.0
// The environment of a command, its output, and its end.
#include "guest/execs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "unit/guest/execs_fixture.h"

namespace agbox::guest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
namespace fs = std::filesystem;

TEST_F(ExecsTest, AnExecHasItsOutputAndItsCode) {
  const auto end = run("e", shell("echo to out; echo to err >&2; exit 3"));
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_EXITED);
  EXPECT_EQ(end.code(), 3);
  EXPECT_EQ(end.detail(), "");
  EXPECT_FALSE(end.output_truncated());
  EXPECT_EQ(out("e"), "to out\n");
  EXPECT_EQ(err("e"), "to err\n");
}

TEST_F(ExecsTest, ResourceUsageIsReported) {
  const auto end = run("e", shell("i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"));
  EXPECT_GT(end.user_cpu_microseconds(), 10'000U);
  EXPECT_GT(end.peak_memory_bytes(), 100'000U);
}

TEST_F(ExecsTest, AFatalSignalIsReported) {
  const auto end = run("e", shell("kill -11 $$"));
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_SIGNALED);
  EXPECT_EQ(end.code(), 11);
}

TEST_F(ExecsTest, AnExecutableFileWithoutAnInterpreterIsAScript) {
  std::ofstream(directory() / "script") << "echo \"$0 $1\"; exit 7\n";
  fs::permissions(directory() / "script", fs::perms(0755));
  const std::string path = directory() / "script";
  const auto end = run("e", order_of({path, "an argument"}));
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_EXITED);
  EXPECT_EQ(end.code(), 7);
  EXPECT_EQ(out("e"), path + " an argument\n");
  EXPECT_EQ(err("e"), "");
}

TEST_F(ExecsTest, AScriptWithoutAnInterpreterIsFoundInThePath) {
  std::ofstream(directory() / "script-in-path") << "echo found\n";
  fs::permissions(directory() / "script-in-path", fs::perms(0755));
  ExecOrder order = order_of({"script-in-path"});
  order.environment = {"PATH=/nowhere:" + directory().string() + ":/bin"};
  run("e", std::move(order));
  EXPECT_EQ(out("e"), "found\n");
}

TEST_F(ExecsTest, ABinaryForAnotherMachineIsNoScript) {
  std::ofstream(directory() / "binary") << std::string(
      "\x7f"
      "ELF\0\0\0\0echo no\n",
      16);
  fs::permissions(directory() / "binary", fs::perms(0755));
  const auto end = run("e", order_of({directory() / "binary"}));
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_NOT_STARTED);
  EXPECT_EQ(end.code(), 126);
  EXPECT_THAT(end.detail(), HasSubstr("Exec format error"));
  EXPECT_EQ(out("e"), "");
}

TEST_F(ExecsTest, WhyItCouldNotStartIsTheLastLineOfItsStandardError) {
  const auto end = run("e", order_of({"no-such-program"}));
  EXPECT_EQ(end.code(), 127);
  EXPECT_EQ(err("e"), "cannot run 'no-such-program': No such file or directory\n");
  EXPECT_EQ(err("e"), end.detail() + "\n");
  EXPECT_EQ(out("e"), "");
}

TEST_F(ExecsTest, StandardOutputCanBeReopenedOnlyByItsUser) {
  run("again", shell("echo a; echo b >/dev/stdout; echo c >/dev/stderr; echo d"));
  EXPECT_EQ(out("again"), "a\nb\nd\n");
  EXPECT_EQ(err("again"), "c\n");
  run("spoil", shell("echo a; : >/dev/stdout; truncate -s 0 /dev/stdout; chmod 777 /dev/stdout; "
                     "echo b"));
  EXPECT_EQ(out("spoil"), "a\nb\n");
  struct stat status{};
  ASSERT_EQ(::stat((directory() / "spoil.out").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST_F(ExecsTest, ReadingItsOwnOutputDoesNotBlock) {
  const auto end = run("e", shell("(cat </dev/stdout >/dev/null) & echo x; exit 5"));
  EXPECT_EQ(end.code(), 5);
}

TEST_F(ExecsTest, TheCommandStartsInACleanProcess) {
  ::setenv("AGBOX_TEST_NOT_FOR_COMMANDS", "1", 1);
  const UniqueFd leaked(::open("/dev/null", O_RDONLY));  // not even close-on-exec
  run("e", shell("echo $PWD $0; id -u; id -g; id -G; ls /proc/$$/fd; "
                 "readlink /proc/$$/fd/0; grep -E 'Sig(Blk|Ign)' /proc/self/status; env | sort; "
                 "set -- $(cat /proc/$$/stat); echo $(($1 - $5)) $(($1 - $6))"));
  EXPECT_EQ(err("e"), "");
  const std::string number = std::to_string(uid()) + "\n";
  EXPECT_EQ(out("e"), directory().string() + " /bin/sh\n" + number + number + number +
                          "0\n1\n2\n/dev/null\n"
                          "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n" +
                          "FOLDER=" + directory().string() +
                          "\nPATH=/usr/bin:/bin\nPWD=" + directory().string() + "\n0 0\n");
}

TEST_F(ExecsTest, BytesAreBytes) {
  std::string bytes;
  for (int i = 0; i < (1 << 20); ++i) bytes += static_cast<char>(i * 7 + i / 256);
  std::ofstream(directory() / "bytes", std::ios::binary) << bytes;
  run("e", shell("cat bytes; cat bytes >&2"));
  EXPECT_EQ(out("e"), bytes);
  EXPECT_EQ(err("e"), bytes);
}

TEST_F(ExecsTest, AllOutputIsInTheFilesWhenTheEndIsReported) {
  for (int i = 0; i < 50; ++i) {
    const std::string id = "e" + std::to_string(i);
    run(id, order_of({"head", "-c", "1000000", "/dev/zero"}));
    EXPECT_EQ(fs::file_size(directory() / (id + ".out")), 1000000U);
  }
}

TEST_F(ExecsTest, OneStreamDoesNotWaitForTheOther) {
  // More than a pipe's capacity, alternating between both.
  run("e", shell("for i in 1 2 3 4 5; do head -c 200000 /dev/zero; head -c 200000 /dev/zero >&2; "
                 "done"));
  EXPECT_EQ(out("e").size(), 1000000U);
  EXPECT_EQ(err("e").size(), 1000000U);
}

TEST_F(ExecsTest, NoOutputAndAnEarlyCloseAreFine) {
  EXPECT_EQ(run("none", order_of({"true"})).code(), 0);
  EXPECT_EQ(run("closed", shell("exec >&- 2>&-; sleep 0.05; exit 4")).code(), 4);
  EXPECT_EQ(out("none") + err("none") + out("closed") + err("closed"), "");
  until_all_is_gone();
}

TEST_F(ExecsTest, ArgumentsArriveAsTheyAre) {
  run("empty", order_of({"printf", "[%s]", "", "a b", "", "*", "\xff\n"}));
  EXPECT_EQ(out("empty"), "[][a b][][*][\xff\n]");
  ExecOrder many = shell("echo $#");
  many.command.resize(many.command.size() + 10'001, "x");
  run("many", std::move(many));
  EXPECT_EQ(out("many"), "10000\n");
}

TEST_F(ExecsTest, AMegabyteOfEnvironmentArrives) {
  ExecOrder order = shell("env | wc -c");
  for (int i = 0; i < 100; ++i) {
    order.environment.push_back("V" + std::to_string(100 + i) + "=" + std::string(9'995, 'v'));
  }
  run("e", std::move(order));
  EXPECT_GT(std::stol(out("e")), 1'000'000);
}

TEST_F(ExecsTest, AFailureToStartIsExplained) {
  struct Case {
    std::vector<std::string> command;
    int code;
    std::string reason;
  };
  std::ofstream(directory() / "plain") << "text";
  std::ofstream(directory() / "garbage") << std::string("te\0t", 4);
  fs::permissions(directory() / "garbage", fs::perms{0755});
  const std::vector<Case> cases = {
      {{"no-such"}, 127, "cannot run 'no-such': No such file or directory"},
      {{"/no/such"}, 127, "cannot run '/no/such': No such file or directory"},
      {{""}, 127, "cannot run '': No such file or directory"},
      {{"./plain"}, 126, "cannot run './plain': Permission denied"},
      {{"./garbage"}, 126, "cannot run './garbage': Exec format error"},
      {{"/tmp"}, 126, "cannot run '/tmp': Permission denied"},
      {{"true", std::string(200'000, 'x')}, 126, "cannot run 'true': Argument list too long"},
      {{std::string(5'000, 'x')}, 126, "File name too long"},
      {{}, 126, "there is no command"},
  };
  int number = 0;
  for (const Case& one : cases) {
    const auto end = run("e" + std::to_string(++number), order_of(one.command));
    EXPECT_EQ(end.how(), v1::ExecEnded::HOW_NOT_STARTED) << one.reason;
    EXPECT_EQ(end.code(), one.code) << one.reason;
    EXPECT_THAT(end.detail(), HasSubstr(one.reason));
    EXPECT_LT(end.detail().size(), 1'000U);
  }
  until_all_is_gone();
}

TEST_F(ExecsTest, AMissingDirectoryIsNamed) {
  ExecOrder order = order_of({"true"});
  order.working_directory = "/no/such/directory";
  const auto end = run("e", std::move(order));
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_NOT_STARTED);
  EXPECT_EQ(end.code(), 126);
  EXPECT_EQ(end.detail(), "cannot change to /no/such/directory: No such file or directory");
}

TEST_F(ExecsTest, MissingLogFilesAreReported) {
  execs_->start("e", order_of({"true"}));
  const auto end = wait_end("e");
  EXPECT_EQ(end.how(), v1::ExecEnded::HOW_NOT_STARTED);
  EXPECT_THAT(end.detail(), HasSubstr("too many open files"));
}

TEST_F(ExecsTest, BackgroundChildrenKeepRunningAndWriting) {
  const auto end = run("e", shell("(while [ ! -e go ]; do sleep 0.01; done; echo late) & "
                                  "echo early; exit 3"));
  EXPECT_EQ(end.code(), 3);
  EXPECT_EQ(out("e"), "early\n");
  EXPECT_TRUE(execs_->any_runs());
  execs_->forget("e");
  std::ofstream(directory() / "go") << "";
  until_all_is_gone();
  EXPECT_EQ(out("e"), "early\nlate\n");
}

TEST_F(ExecsTest, OutputIsTruncatedAtItsLimitAndTheExecContinues) {
  ExecOrder order = shell("seq 1 100000; seq 1 10 >&2; exit 7");
  order.limits.bytes = 100'000;
  const auto end = run("e", std::move(order));
  EXPECT_EQ(end.code(), 7);
  EXPECT_TRUE(end.output_truncated());
  ASSERT_EQ(reported_.size(), 2U);
  EXPECT_EQ(reported_[0].exec_truncated().exec_id(), "e");
  std::string whole;
  for (int i = 1; i <= 100'000; ++i) whole += std::to_string(i) + "\n";
  EXPECT_EQ(out("e"), whole.substr(0, 100'000));
  EXPECT_EQ(err("e"), "");
}

TEST_F(ExecsTest, ALimitThatIsExactlyReachedDropsNothing) {
  ExecOrder order = shell("printf 12345; printf 678 >&2");
  order.limits.bytes = 8;
  EXPECT_FALSE(run("e", std::move(order)).output_truncated());
  EXPECT_EQ(out("e") + err("e"), "12345678");
}

TEST_F(ExecsTest, TheFreeSpaceReserveIsRespected) {
  ExecOrder order = shell("echo x; exit 1");
  order.limits.free_space_reserve = std::uint64_t{1} << 60;
  const auto end = run("full", std::move(order));
  EXPECT_TRUE(end.output_truncated());
  EXPECT_EQ(end.code(), 1);
  EXPECT_EQ(out("full"), "");
  ExecOrder with_room = order_of({"head", "-c", "3000000", "/dev/zero"});
  with_room.limits.free_space_reserve = 1;
  EXPECT_FALSE(run("room", std::move(with_room)).output_truncated());
  EXPECT_EQ(out("room").size(), 3'000'000U);
}

TEST_F(ExecsTest, AWriteErrorDropsAllFurtherOutputOfBothStreams) {
  ExecOrder order = shell(
      "echo before >&2; while [ ! -e go ]; do sleep 0.01; done; echo lost; "
      "while [ ! -e on ]; do sleep 0.01; done; echo lost >&2; exit 2");
  order.files.out.reset(::open("/dev/full", O_WRONLY | O_APPEND | O_CLOEXEC));
  start("e", std::move(order));
  until([this] { return err("e") == "before\n"; });
  std::ofstream(directory() / "go") << "";
  until([this] { return std::ranges::any_of(reported_, &v1::ToDaemon::has_exec_truncated); });
  std::ofstream(directory() / "on") << "";
  const auto end = wait_end("e");
  EXPECT_EQ(end.code(), 2);
  EXPECT_TRUE(end.output_truncated());
  EXPECT_EQ(err("e"), "before\n");
}

TEST_F(ExecsTest, AKnownExecIsNotRunAgain) {
  run("e", shell("echo once >>ran"));
  execs_->start("e", shell("echo twice >>ran"));
  until_all_is_gone();
  EXPECT_EQ(read("ran"), "once\n");
  EXPECT_EQ(reported_.size(), 1U);
}

TEST_F(ExecsTest, AReconnectedDaemonGetsAllReportsAgain) {
  ExecOrder chatty = shell("echo 123; while [ ! -e go ]; do sleep 0.01; done");
  chatty.limits.bytes = 2;
  start("a-runs", std::move(chatty));
  run("b-ended", shell("exit 9"));
  run("c-forgotten", order_of({"true"}));
  execs_->forget("c-forgotten");
  until([this] { return std::ranges::any_of(reported_, &v1::ToDaemon::has_exec_truncated); });

  reported_.clear();
  execs_->report_all();
  ASSERT_EQ(reported_.size(), 3U);
  EXPECT_THAT(reported_[0].execs_known().exec_ids(), ElementsAre("a-runs", "b-ended"));
  EXPECT_FALSE(reported_[0].execs_known().more());
  EXPECT_EQ(reported_[1].exec_truncated().exec_id(), "a-runs");
  EXPECT_EQ(reported_[2].exec_ended().code(), 9);

  std::ofstream(directory() / "go") << "";
  EXPECT_TRUE(wait_end("a-runs").output_truncated());
}

TEST_F(ExecsTest, ManyIdsAreSplitIntoSeveralMessages) {
  for (int i = 0; i < 600; ++i) execs_->start("e" + std::to_string(i), ExecOrder());
  reported_.clear();
  execs_->report_all();
  ASSERT_EQ(reported_.size(), 602U);
  EXPECT_EQ(reported_[0].execs_known().exec_ids_size(), 512);
  EXPECT_TRUE(reported_[0].execs_known().more());
  EXPECT_EQ(reported_[1].execs_known().exec_ids_size(), 88);
  EXPECT_FALSE(reported_[1].execs_known().more());
}

TEST_F(ExecsTest, ARunnerInheritsNothingAndIsUndumpable) {
  const UniqueFd secret(::open("/etc/hostname", O_RDONLY));
  start("e", shell("echo up; while [ ! -e go ]; do sleep 0.01; done"));
  until([this] { return out("e") == "up\n"; });  // the runner has finished its setup
  ASSERT_EQ(runners().size(), 1U);
  const std::string runner = "/proc/" + std::to_string(runners()[0]);
  std::vector<std::string> open;
  for (const auto& fd : fs::directory_iterator(runner + "/fd")) {
    open.push_back(fs::read_symlink(fd).string());
  }
  // Null three times, two files, two pipes, the channel, the signals.
  EXPECT_EQ(open.size(), 9U);
  EXPECT_THAT(open, testing::Not(testing::Contains("/etc/hostname")));
  std::ofstream(directory() / "go") << "";
  wait_end("e");
}

TEST_F(ExecsTest, StoppingTerminatesEverything) {
  start("a", shell("trap 'echo bye; exit 0' TERM; : >a.up; while :; do sleep 0.01; done"));
  run("b", shell("setsid sleep 1000 & exit 0"));
  until([this] { return exists("a.up"); });
  execs_->terminate_all();
  until_all_is_gone();
  EXPECT_EQ(wait_end("a").how(), v1::ExecEnded::HOW_EXITED);
  EXPECT_EQ(out("a"), "bye\n");
  EXPECT_THAT(alive(), IsEmpty());
}

}  // namespace
}  // namespace agbox::guest
