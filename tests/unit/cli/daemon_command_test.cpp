// SPDX-License-Identifier: Apache-2.0
// agbox daemon and agbox setup where no daemon can be started, and the programs that they run.
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "cli/program.h"
#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class DaemonCommand : public Commands {
 protected:
  // Neither systemd nor agboxd is found.
  DaemonCommand() {
    if (const char* path = std::getenv("PATH")) former_path_ = path;
    ::setenv("PATH", temp_directory_.path().c_str(), 1);
  }
  ~DaemonCommand() override { ::setenv("PATH", former_path_.c_str(), 1); }

 private:
  std::string former_path_;
};

TEST_F(DaemonCommand, StatusShowsTheDaemon) {
  EXPECT_EQ(run({"daemon", "status"}), 1);
  EXPECT_THAT(error_, StartsWith("daemon status: agboxd is not running: "));
  test::ScriptedDaemon daemon(socket());
  daemon.ping_response.set_version("9.8.7");
  daemon.ping_response.set_engine("Docker 28");
  EXPECT_EQ(run({"daemon", "status"}), 0);
  EXPECT_EQ(out_, "version=9.8.7\nprocess=\nengine=Docker 28\nsocket=" + socket().string() + "\n");
  EXPECT_EQ(run({"daemon", "status", "--json"}), 0);
  EXPECT_EQ(out_,
            "{\n  \"version\": \"9.8.7\",\n  \"process\": null,\n  \"engine\": \"Docker 28\",\n"
            "  \"socket\": \"" +
                socket().string() + "\"\n}\n");
}

TEST_F(DaemonCommand, StartOfARunningDaemonIsNoError) {
  const test::ScriptedDaemon daemon(socket());
  EXPECT_EQ(run({"daemon", "start"}), 0);
  EXPECT_EQ(error_, "agboxd is running already.\n");
  EXPECT_EQ(run({"setup"}), 0);
  EXPECT_THAT(error_, StartsWith("agboxd is running: nothing is left to set up."));
}

TEST_F(DaemonCommand, WithoutAProgramNothingStarts) {
  EXPECT_EQ(run({"daemon", "start"}), 1);
  EXPECT_EQ(error_, "start agboxd: it is neither next to this agbox nor on PATH\n");
  EXPECT_EQ(run({"setup", "--no-input"}), 1);
  EXPECT_THAT(error_, StartsWith("setup: agboxd is neither next to this agbox nor on PATH"));
  EXPECT_EQ(run({"run", "debian:12", "true"}), 125);
  EXPECT_THAT(error_, StartsWith("create sandbox: agboxd is not running: "));
}

TEST_F(DaemonCommand, OneThatEndsAtOnceIsReportedWithItsLogWhichIsTheUsersAlone) {
  const auto program = temp_directory_.path() / "agboxd";
  std::ofstream(program) << "#!/bin/sh\necho this is why >&2\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ::setenv("XDG_DATA_HOME", (temp_directory_.path() / "data").c_str(), 1);
  const mode_t former = ::umask(022);
  EXPECT_EQ(run({"daemon", "start"}), 1);
  ::umask(former);
  ::unsetenv("XDG_DATA_HOME");
  EXPECT_THAT(error_, StartsWith("agboxd has ended; its log "));
  EXPECT_THAT(error_, HasSubstr("says:\nthis is why\n"));
  struct stat directory{};
  ASSERT_EQ(::stat((temp_directory_.path() / "data/agents-sandbox").c_str(), &directory), 0);
  EXPECT_EQ(directory.st_mode & 07777, 0700U) << "as agboxd would create it";
}

TEST_F(DaemonCommand, RunStartsNoDaemonThatCouldRunNothing) {
  const auto program = temp_directory_.path() / "agboxd";
  const auto has_begun = temp_directory_.path() / "has-begun";
  std::ofstream(program) << "#!/bin/sh\necho > " << has_begun.string() << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ::setenv("XDG_DATA_HOME", temp_directory_.path().c_str(), 1);
  ::setenv("DOCKER_HOST", "unix:///no/engine.sock", 1);
  EXPECT_EQ(run({"run", "debian:12", "true"}), 125);
  ::unsetenv("DOCKER_HOST");
  ::unsetenv("XDG_DATA_HOME");
  EXPECT_THAT(error_, StartsWith("create sandbox: agboxd is not running: "));
  EXPECT_FALSE(std::filesystem::exists(has_begun));
}

TEST_F(DaemonCommand, StopOfADaemonThatDoesNotRunIsNoError) {
  EXPECT_EQ(run({"daemon", "stop"}), 0);
  EXPECT_THAT(error_, StartsWith("agboxd is not running.\n"));
}

TEST_F(DaemonCommand, WithoutALogItSaysWhy) {
  ::setenv("XDG_DATA_HOME", temp_directory_.path().c_str(), 1);
  EXPECT_EQ(run({"daemon", "logs"}), 1);
  ::unsetenv("XDG_DATA_HOME");
  EXPECT_THAT(error_, HasSubstr("agboxd.log: it was not started with \"agbox daemon start\""));
  for (const std::string lines : {"x", "-1", "1.5"}) {
    EXPECT_EQ(run({"daemon", "logs", "--tail=" + lines}), 2);
    EXPECT_EQ(error_, "--tail: \"" + lines + "\" is not a number of lines\n");
  }
}

TEST(Program, ReturnsTheExitCodeAsAShellDoes) {
  EXPECT_EQ(run_program({"true"}), 0);
  EXPECT_EQ(run_program({"sh", "-c", "exit 3"}), 3);
  EXPECT_EQ(run_program({"sh", "-c", "kill -9 $$"}), 137);
  EXPECT_EQ(run_program({"/no/such/program"}), 127);
  EXPECT_EQ(run_program({"/dev/null"}), 126);
  EXPECT_TRUE(program_succeeds({"echo", "unseen"}));
  EXPECT_FALSE(program_succeeds({"false"}));
}

TEST(Program, InTheBackgroundItHasASessionAndALogOfItsOwn) {
  const test::ShortDirectory directory;
  const auto program = directory.path() / "program";
  std::ofstream(program)
      << "#!/bin/sh\n"
         "echo \"$(ps -o sid= -p $$ | tr -d ' ') $$ $PWD ${GRPC_POLL_STRATEGY-unset}\"\n"
         "echo complaint >&2\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ::setenv("GRPC_POLL_STRATEGY", "poll", 1);
  const auto started = run_in_background(program, directory.path() / "log");
  ::unsetenv("GRPC_POLL_STRATEGY");
  ASSERT_TRUE(started);
  pollfd ended{.fd = started->ended.get(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
  std::ostringstream log;
  log << std::ifstream(directory.path() / "log").rdbuf();
  const std::string process = std::to_string(started->process);
  EXPECT_EQ(log.str(), process + " " + process + " / unset\ncomplaint\n");
  EXPECT_EQ(run_in_background("/no/such", directory.path() / "log").error(), ENOENT);
}

}  // namespace
}  // namespace agbox::cli
