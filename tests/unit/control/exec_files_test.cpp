// SPDX-License-Identifier: Apache-2.0
// What happens to an exec, and to its sandbox, while its files do not respond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>

#include "base/failpoint.h"
#include "model/exec/exec_request.h"
#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

class ExecFilesTest : public ExecTest {
 protected:
  ExecFilesTest() {
    stop();
    ttls_.history = 1h;
    start();
    wait_for_engine();
    wait_connected();
  }
  ~ExecFilesTest() override {
    if (is_hung_) respond();
  }

  void wait_connected() {
    run_until([&] { return guests_.is_connected(container()); });
    run_until_idle();
  }
  void hang() {
    is_hung_ = true;
    boost::asio::post(place().exec_files(),
                      [responds = disk_.get_future().share()] { responds.wait(); });
  }
  void respond() {
    is_hung_ = false;
    disk_.set_value();
    std::promise<void> is_done;  // with all that waited
    boost::asio::post(place().exec_files(), [&is_done] { is_done.set_value(); });
    is_done.get_future().wait();
    run_until_idle();
  }
  // Accepted, and its files are being opened for a guest that does not have it.
  void begin_opening(const std::string& exec_id) {
    ASSERT_TRUE(failpoint::arm("exec.send.before=error"));
    ASSERT_TRUE(create_exec(exec_id).has_value());
    disarm();
    hang();
    guests_.cut(container());
    run_until([&] { return !guests_.is_connected(container()); });
    wait_connected();
    ASSERT_EQ(given(exec_id), nullptr);
  }
  void begin_purge() {
    clock_.advance(2h);
    run_until([&] {
      directory().deadlines().call_due();
      return !std::filesystem::exists(output());
    });
    run_until_idle();
  }
  bool is_purged() { return !directory().get(kBox).has_value(); }
  void wait_purged() {
    run_until([&] {
      clock_.advance(1h);
      directory().deadlines().call_due();
      return is_purged();
    });
  }
  std::filesystem::path output() const { return temp_directory_.path() / "execs" / kBox; }

 private:
  std::promise<void> disk_;
  bool is_hung_ = false;
};

TEST_F(ExecFilesTest, AnExecIsSentOnceItsFilesAreOpen) {
  begin_opening("late-1");
  respond();
  wait_given("late-1");
  EXPECT_EQ(times_begun("late-1"), 1);
}

TEST_F(ExecFilesTest, AnExecThatIsCancelledMeanwhileIsNotSent) {
  begin_opening("late-1");
  ASSERT_TRUE(cancel_exec("late-1").has_value());
  respond();
  wait_for_end("late-1");
  EXPECT_EQ(exec("late-1").state(), v1::EXEC_STATE_CANCELLED);
  EXPECT_EQ(times_begun("late-1"), 0);
}

TEST_F(ExecFilesTest, AnExecThatEndsMeanwhileIsNotTakenForAnotherOneWithItsId) {
  begin_opening("twice-1");
  report_end("twice-1");
  settle();
  std::optional<Result<v1::CreateExecResponse>> again;
  directory().create_exec(kBox, parse_exec_request(request("twice-1")),
                          [&](auto reply) { again = std::move(reply); });
  run_until_idle();
  respond();
  run_until([&] { return again.has_value(); });
  ASSERT_FALSE(again->has_value());
  EXPECT_EQ(again->error().reason(), reason::kExecIdAlreadyExists);
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED twice-1", "EXEC_FINISHED twice-1"));
}

TEST_F(ExecFilesTest, APurgeWaitsForAnExecThatHasEnded) {
  begin_opening("late-1");
  report_end("late-1");
  settle();
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  begin_purge();
  settle();
  EXPECT_FALSE(is_purged());
  respond();
  wait_purged();
}

TEST_F(ExecFilesTest, TheReasonOfAnExecThatWasNotStartedComesBeforeItsEnd) {
  begin_exec("unsent-1");
  hang();
  report_not_sent("unsent-1", "no way to send it");
  run_until_idle();
  settle();
  EXPECT_EQ(exec("unsent-1").state(), v1::EXEC_STATE_RUNNING);
  respond();
  wait_for_end("unsent-1");
  EXPECT_EQ(errors_of("unsent-1"), "no way to send it\n");
}

TEST_F(ExecFilesTest, AReasonThatCannotBeWrittenForALongTimeDelaysNothingLonger) {
  begin_exec("unsent-1");
  hang();
  report_not_sent("unsent-1", "no way to send it");
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  EXPECT_EQ(exec("unsent-1").error(), "no way to send it");
  EXPECT_EQ(errors_of("unsent-1"), "");
  EXPECT_THAT(exec_events(), ElementsAre("EXEC_STARTED unsent-1", "EXEC_FAILED unsent-1",
                                         "SANDBOX_DELETE_REQUESTED", "SANDBOX_DELETED"));
  clock_.advance(2h);
  directory().deadlines().call_due();
  run_until_idle();
  settle();
  EXPECT_FALSE(is_purged()) << "its files are in use";
  respond();
  wait_purged();
}

TEST_F(ExecFilesTest, APurgeWaitsForAnExecThatIsBeingRefused) {
  hang();
  std::optional<Result<v1::CreateExecResponse>> created;
  directory().create_exec(kBox, parse_exec_request(request("hung-1")),
                          [&](auto reply) { created = std::move(reply); });
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  begin_purge();
  settle();
  EXPECT_FALSE(is_purged());
  EXPECT_FALSE(created.has_value());
  respond();
  run_until([&] { return created.has_value(); });
  ASSERT_FALSE(created->has_value());
  EXPECT_EQ(created->error().reason(), reason::kSandboxNotReady);
  wait_purged();
}

TEST_F(ExecFilesTest, OfTwoPurgesOneComesFirst) {
  ASSERT_TRUE(remove(kBox).has_value());
  wait_for_state(kBox, v1::SANDBOX_STATE_DELETED);
  hold_store();
  begin_purge();
  run_until([&] { return held_reports() > 0; });
  // The second one takes longer to remove these than the first one to end.
  std::filesystem::create_directory(output());
  for (int i = 0; i < 2000; ++i) std::ofstream(output() / std::to_string(i)) << "text";
  directory().deadlines().set(kBox, clock_.boot_now());
  directory().deadlines().call_due();
  run_until_idle();
  release_store();
  run_until([&] { return is_purged(); });
  settle();
}

}  // namespace
}  // namespace agbox
