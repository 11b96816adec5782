// SPDX-License-Identifier: Apache-2.0
// An exec that never reaches a guest: its reason is the last line of its stderr log before its end
// is seen, once, wherever the daemon is killed.
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/failpoint.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

class ExecUnstartedTest : public ExecTest {
 protected:
  // Accepted while the container is down.
  void begin_waiting(const std::string& exec_id) {
    end_container(7);
    run_until([&] { return restarts().next().has_value(); });
    settle();
    ASSERT_TRUE(create_exec(exec_id).has_value());
    settle();
  }
  void wait_too_long() {
    clock_.advance(30s);
    exec_waits().call_due();
  }
  // What the next daemon finds is what is on disk now, except for the output of execs.
  void keep_store() { fs::copy(data(), kept(), fs::copy_options::recursive); }
  void crash_to_kept_store() {
    stop();
    fs::remove_all(data());
    fs::rename(kept(), data());
  }
  void expect_reason(const std::string& exec_id, const std::string& words) {
    wait_for_end(exec_id);
    EXPECT_EQ(exec(exec_id).state(), v1::EXEC_STATE_FAILED);
    EXPECT_THAT(exec(exec_id).error(), HasSubstr(words));
    EXPECT_EQ(errors_of(exec_id), exec(exec_id).error() + "\n");
    EXPECT_EQ(times_begun(exec_id), 0);
  }

 private:
  fs::path data() const { return temp_directory_.path() / "data"; }
  fs::path kept() const { return temp_directory_.path() / "data-as-it-was"; }
};

TEST_F(ExecUnstartedTest, OneThatWaitedTooLongForTheContainerSaysSo) {
  begin_waiting("early-1");
  wait_too_long();
  expect_reason("early-1", "the command was not started");
}

TEST_F(ExecUnstartedTest, ReadersGetTheReasonBeforeTheEnd) {
  begin_waiting("early-1");
  const std::string path = exec("early-1").stderr_log_path();
  std::optional<std::uintmax_t> size_at_end;
  std::optional<Result<ExecOutputSource>> found;
  directory().find_exec_output(
      "early-1", [&] { size_at_end = fs::file_size(path); },
      [&](auto source) { found = std::move(source); });
  run_until([&] { return found.has_value(); });
  wait_too_long();
  wait_for_end("early-1");
  run_until([&] { return size_at_end.has_value(); });
  EXPECT_EQ(*size_at_end, exec("early-1").error().size() + 1);
}

TEST_F(ExecUnstartedTest, OneThatWaitsWhenItsSandboxFailsSaysWhyAndEndsFirst) {
  begin_waiting("early-1");
  engine().containers.erase(engine().find_container(container())->id);
  clock_.advance(100ms);
  restarts().call_due();
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  expect_reason("early-1", "it was removed");
  EXPECT_THAT(exec_events(), ElementsAre("SANDBOX_PREPARING", "EXEC_STARTED early-1",
                                         "EXEC_FAILED early-1", "SANDBOX_FAILED"));
}

TEST_F(ExecUnstartedTest, OneThatIsAcceptedWhileItsSandboxFailsSaysWhy) {
  docker().hold("GET /containers/*/json");
  guests_.freeze(container());
  guests_.cut(container());
  engine().containers.erase(engine().find_container(container())->id);
  run_until([&] { return docker().held("GET /containers/*/json") == 1; });
  begin_accepting(
      "early-1", [](const auto&) {},
      [&] {
        run_until([&] { return held_reports() == 1; });  // changes may be reported together
        docker().release("GET /containers/*/json");
        run_until([&] { return held_reports() > 1; });
      });
  wait_for_state(kBox, v1::SANDBOX_STATE_FAILED);
  expect_reason("early-1", "it was removed");
}

TEST_F(ExecUnstartedTest, OneThatIsCancelledHasNoReason) {
  begin_waiting("early-1");
  ASSERT_TRUE(cancel_exec("early-1").has_value());
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(errors_of("early-1"), "");
}

TEST_F(ExecUnstartedTest, AReasonOfSeveralLinesIsOneLine) {
  begin_exec("unsent-1");
  report_not_sent("unsent-1", "one\nof many");
  wait_for_end("unsent-1");
  EXPECT_EQ(errors_of("unsent-1"), "one of many\n");
}

TEST_F(ExecUnstartedTest, OneWhoseLogCannotBeWrittenEndsAllTheSame) {
  begin_exec("unsent-1");
  const fs::path log = exec("unsent-1").stderr_log_path();
  fs::remove(log);
  fs::create_directory(log);
  report_not_sent("unsent-1", "no way to send it");
  wait_for_end("unsent-1");
  EXPECT_EQ(exec("unsent-1").error(), "no way to send it");
}

// A daemon that is killed after the line and before the end is on disk.
TEST_F(ExecUnstartedTest, ADaemonThatEndsAfterTheReasonIsFollowedByOneThatDoesNotRepeatIt) {
  begin_waiting("early-1");
  keep_store();
  wait_too_long();
  wait_for_end("early-1");
  crash_to_kept_store();
  docker().hold("POST /containers/*/start");
  start();
  run_until([&] { return docker().held("POST /containers/*/start") == 1; });
  ASSERT_EQ(exec("early-1").state(), v1::EXEC_STATE_RUNNING);
  wait_too_long();
  expect_reason("early-1", "the command was not started");
  docker().release("POST /containers/*/start");
}

TEST_F(ExecUnstartedTest, AReasonThatIsNotTheEndIsNotInTheOutputOfACommandThatRuns) {
  begin_waiting("early-1");
  keep_store();
  wait_too_long();
  wait_for_end("early-1");
  ASSERT_NE(errors_of("early-1"), "");
  crash_to_kept_store();
  start();
  wait_given("early-1");
  EXPECT_EQ(errors_of("early-1"), "");
  end_exec("early-1", 0);
  wait_for_end("early-1");
  EXPECT_EQ(exec("early-1").state(), v1::EXEC_STATE_FINISHED);
}

// Nothing of its sandbox goes to disk before it.
TEST_F(ExecUnstartedTest, ACallThatFollowsSeesTheEndFirst) {
  begin_exec("unsent-1");
  report_not_sent("unsent-1", "no way to send it");
  ASSERT_FALSE(cancel_exec("unsent-1").has_value());
  EXPECT_EQ(exec("unsent-1").state(), v1::EXEC_STATE_FAILED);
  EXPECT_EQ(errors_of("unsent-1"), "no way to send it\n");
}

}  // namespace
}  // namespace agbox
