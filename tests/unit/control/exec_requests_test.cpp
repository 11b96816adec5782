// SPDX-License-Identifier: Apache-2.0
// What is refused, in which order, and that a refusal leaves nothing.
#include <fcntl.h>
#include <sys/stat.h>

#include <fstream>

#include "base/failpoint.h"
#include "execlog/exec_logs.h"
#include "model/exec/exec_request.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "unit/control/exec_fixture.h"
#include "unit/file_lease.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ExecRequestsTest : public ExecTest {};

TEST_F(ExecRequestsTest, TheSandboxComesBeforeTheRequest) {
  const auto bad = [](auto& r) { r.clear_command(); };
  EXPECT_EQ(create_exec(request("some-1", bad, "nobody")).error().message(),
            "sandbox nobody was not found");
  create_held_at("box-2", "create.image.before");
  const auto early = create_exec(request("some-1", bad, "box-2"));
  EXPECT_EQ(early.error().reason(), reason::kSandboxNotReady);
  EXPECT_EQ(early.error().message(),
            "sandbox box-2 is not ready: it is being created; wait until it is ready");
  EXPECT_EQ(early.error().metadata().at("sandbox_id"), "box-2");
  EXPECT_EQ(create_exec("some-1", bad).error().message(), "command must not be empty");
  disarm();
}

TEST_F(ExecRequestsTest, WhileItIsDeletedASandboxTakesNone) {
  remove_held_at(kBox, "delete.containers.before");
  EXPECT_EQ(create_exec("late-1").error().reason(), reason::kSandboxNotReady);
  disarm();
}

TEST_F(ExecRequestsTest, AnIdIsTakenForEverWhereverItWasUsed) {
  create_ready("box-2");
  const auto expect_taken = [&](const std::string& exec_id) {
    for (const char* sandbox : {kBox, "box-2"}) {
      const auto again = create_exec(request(exec_id, {}, sandbox));
      ASSERT_FALSE(again.has_value());
      EXPECT_EQ(again.error().reason(), reason::kExecIdAlreadyExists);
      EXPECT_EQ(again.error().message(), "exec_id " + exec_id + " already exists");
      EXPECT_EQ(again.error().metadata().at("exec_id"), exec_id);
    }
  };
  begin_exec("taken-1");
  expect_taken("taken-1");
  std::ofstream(exec("taken-1").stdout_log_path(), std::ios::app) << "kept";
  end_exec("taken-1", 0);
  wait_for_end("taken-1");
  expect_taken("taken-1");
  restart();
  expect_taken("taken-1");
  // Nothing of the refused ones is left, and what the first one wrote is untouched.
  EXPECT_THAT(log_files("box-2"), IsEmpty());
  EXPECT_THAT(log_files(), ElementsAre("taken-1.stderr.log", "taken-1.stdout.log"));
  EXPECT_EQ(std::filesystem::file_size(exec("taken-1").stdout_log_path()), 4U);
  EXPECT_THAT(exec_events("box-2"), IsEmpty());
}

TEST_F(ExecRequestsTest, OfTwoWithOneIdAtTheSameTimeOneIsAccepted) {
  create_ready("box-2");
  std::vector<std::optional<Result<v1::CreateExecResponse>>> replies(3);
  const char* const sandboxes[] = {kBox, kBox, "box-2"};
  for (std::size_t i = 0; i < replies.size(); ++i) {
    const auto wanted = request("twin-1", {}, sandboxes[i]);
    directory().create_exec(sandboxes[i], parse_exec_request(wanted),
                            [&replies, i](auto result) { replies[i] = std::move(result); });
  }
  run_until([&] { return replies[0] && replies[1] && replies[2]; });
  EXPECT_TRUE(replies[0]->has_value());
  EXPECT_EQ(replies[1]->error().reason(), reason::kExecIdAlreadyExists);
  EXPECT_EQ(replies[2]->error().reason(), reason::kExecIdAlreadyExists);
  wait_given("twin-1");
  EXPECT_EQ(times_begun("twin-1"), 1);
}

// A create that was killed between its files and its commit.
TEST_F(ExecRequestsTest, FilesThatACreateLeftBehindAreTakenOver) {
  const auto temp_directory = temp_directory_.path() / "execs" / kBox;
  std::ofstream(temp_directory / "again-1.stdout.log") << "of an exec that never was";
  const auto created = create_exec("again-1");
  ASSERT_TRUE(created.has_value()) << created.error().message();
  wait_given("again-1");
  EXPECT_EQ(std::filesystem::file_size(created->stdout_log_path()), 0U);
  EXPECT_TRUE(std::filesystem::exists(created->stderr_log_path()));
  EXPECT_EQ(::fcntl(given("again-1")->out.get(), F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND);
}

// The sandbox sees its logs read-only, but its commands run as their owner.
TEST_F(ExecRequestsTest, ALeaseOnALogHoldsNobody) {
  const auto path = temp_directory_.path() / "execs" / kBox / "busy-1.stdout.log";
  std::ofstream(path) << "of an exec that never was";
  const FileLease lease(path);
  ASSERT_TRUE(create_exec("busy-1").has_value());
  wait_for_end("busy-1");
  EXPECT_EQ(exec("busy-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_THAT(exec("busy-1").error(), HasSubstr("a process holds a lease on " + path.string()));
  EXPECT_EQ(times_begun("busy-1"), 0);
}

// S4: whatever lies at the place of a log, nothing is written through it.
TEST_F(ExecRequestsTest, ALinkAtThePlaceOfALogIsNotFollowed) {
  const auto temp_directory = temp_directory_.path() / "execs" / kBox;
  const auto victim = temp_directory_.path() / "victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, temp_directory / "link-1.stdout.log");
  ASSERT_TRUE(create_exec("link-1").has_value());
  wait_for_end("link-1");
  EXPECT_EQ(exec("link-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_THAT(exec("link-1").error(), HasSubstr("prepare exec artifact output"));
  std::filesystem::create_hard_link(victim, temp_directory / "hard-1.stdout.log");
  ASSERT_TRUE(create_exec("hard-1").has_value());
  wait_for_end("hard-1");
  EXPECT_THAT(exec("hard-1").error(), HasSubstr("not a file of its own"));
  EXPECT_EQ(std::filesystem::file_size(victim), 8U);
  ASSERT_EQ(::mkfifo((temp_directory / "fifo-1.stdout.log").c_str(), 0600), 0);
  ASSERT_TRUE(create_exec("fifo-1").has_value());
  wait_for_end("fifo-1");
  EXPECT_THAT(exec("fifo-1").error(), HasSubstr("prepare exec artifact output"));
  EXPECT_EQ(times_begun("link-1") + times_begun("hard-1") + times_begun("fifo-1"), 0);
}

TEST_F(ExecRequestsTest, ADirectoryThatCannotBeUsedIsToldInTheWordsThatClientsKnow) {
  const auto temp_directory = temp_directory_.path() / "execs" / kBox;
  std::filesystem::remove_all(temp_directory);
  std::ofstream(temp_directory) << "not a directory";
  const auto refused = create_exec("dir-1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kExecOutputUnavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr("prepare exec artifact output: "));
  EXPECT_EQ(get_exec("dir-1").error().reason(), reason::kExecNotFound);
  // L19: the id is free again.
  std::filesystem::remove(temp_directory);
  EXPECT_TRUE(create_exec("dir-1").has_value());
}

// L19
TEST_F(ExecRequestsTest, ACreateWhoseFilesCannotBeMadeLeavesNothing) {
  ASSERT_TRUE(failpoint::arm("exec.files.before=error"));
  ASSERT_FALSE(create_exec("io-1").has_value());
  disarm();
  EXPECT_THAT(log_files(), IsEmpty());
  EXPECT_TRUE(create_exec("io-1").has_value());
}

TEST_F(ExecRequestsTest, AsManyRunAsOneSandboxMay) {
  for (std::size_t i = 0; i < maxima::kExecsPerSandbox; ++i) {
    ASSERT_TRUE(create_exec("many-" + std::to_string(i)).has_value());
  }
  const auto refused = create_exec("one-more");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("running execs of sandbox box-1: at most 512"));
  EXPECT_THAT(log_files(), SizeIs(2 * maxima::kExecsPerSandbox));
  wait_given("many-7");
  end_exec("many-7", 0);
  wait_for_end("many-7");
  EXPECT_TRUE(create_exec("one-more").has_value());
}

TEST_F(ExecRequestsTest, TheirRequestsMayNotFillTheMemory) {
  const auto large = [](auto& r) { r.add_command(std::string(std::size_t{3} << 20, 'x')); };
  for (int i = 0; i < 3; ++i) begin_exec("large-" + std::to_string(i), large);
  const auto refused = create_exec("large-4", large);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("bytes of the requests of running execs"));
  begin_exec("small-1");
  end_exec("large-1", 0);
  wait_for_end("large-1");
  begin_exec("large-4", large);
}

TEST(ExecLogsTest, ADiskWithoutRoomIsToldWithItsNumbers) {
  constexpr std::uint64_t mib = std::uint64_t{1} << 20;
  EXPECT_TRUE(check_space("/logs", {.left = 7 * mib, .reserve = 7 * mib}).has_value());
  const auto refused = check_space("/logs", {.left = 7 * mib - 1, .reserve = 7 * mib});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  EXPECT_EQ(refused.error().message(),
            "prepare exec artifact output: the filesystem of /logs has 6 MiB left, and 7 MiB have "
            "to stay free; free some space there");
}

TEST(ExecLogsTest, TheTemplateIsFilledInOnce) {
  EXPECT_EQ(exec_log_name("{sandbox_id}/{exec_id}", "box", "one"), "box/one");
  EXPECT_EQ(exec_log_name("{sandbox_id}/x{exec_id}y/{sandbox_id}", "b", "e"), "b/xey/b");
}

}  // namespace
}  // namespace agbox
