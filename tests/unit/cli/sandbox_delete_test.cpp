// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

class SandboxDelete : public Commands {
 protected:
  static void prepare(test::ScriptedDaemon& daemon) {
    moves(daemon, v1::SANDBOX_STATE_DELETING, v1::SANDBOX_DELETED, v1::SANDBOX_STATE_DELETED);
  }
};

TEST_F(SandboxDelete, WaitsUntilItIsGone) {
  test::ScriptedDaemon daemon(socket(), prepare);
  EXPECT_EQ(run({"sandbox", "delete", "box-1"}), 0);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(error_, MatchesRegex("Waiting for sandbox box-1 to be deleted\\.\\.\\.\n"
                                   "Sandbox deleted in [0-9]+\\.[0-9]s\\.\n"));
  EXPECT_THAT(daemon.calls(),
              ElementsAre("DeleteSandbox sandbox_id: \"box-1\"", "GetSandbox sandbox_id: \"box-1\"",
                          "SubscribeSandboxEvents sandbox_id: \"box-1\" from_sequence: 4"));
}

TEST_F(SandboxDelete, ADeleteThatEndsFailedDoesNotWaitForEver) {
  test::ScriptedDaemon daemon(socket(), prepare);
  auto failed = moved(v1::SANDBOX_FAILED, v1::SANDBOX_STATE_FAILED);
  failed.mutable_sandbox_phase()->set_error_message("the engine refused");
  daemon.events = {failed};
  EXPECT_EQ(run({"sandbox", "delete", "box-1"}), 1);
  EXPECT_EQ(error_,
            "Waiting for sandbox box-1 to be deleted...\n"
            "sandbox box-1 failed: the engine refused\n"
            "  Try again:          agbox sandbox delete box-1\n");
}

TEST_F(SandboxDelete, AnUnknownSandboxIsNamed) {
  test::ScriptedDaemon daemon(socket());
  daemon.status = unknown("nope");
  EXPECT_EQ(run({"sandbox", "delete", "nope"}), 1);
  EXPECT_EQ(error_, "delete sandbox: Sandbox nope not found.\n");
  EXPECT_EQ(run({"sandbox", "delete", "--label", "a=b"}), 1);
  EXPECT_THAT(error_, StartsWith("delete sandboxes: "));
}

TEST_F(SandboxDelete, EitherAnIdOrLabels) {
  EXPECT_EQ(run({"sandbox", "delete"}), 2);
  EXPECT_EQ(error_, "sandbox delete requires <sandbox_id> or at least one --label\n");
  EXPECT_EQ(run({"sandbox", "delete", "box-1", "--label", "a=b"}), 2);
  EXPECT_EQ(error_, "sandbox delete <sandbox_id> and --label are mutually exclusive\n");
  EXPECT_EQ(run({"sandbox", "delete", "--label", "ab"}), 2);
  EXPECT_EQ(error_, "--label must be in key=value form\n");
  EXPECT_EQ(run({"sandbox", "delete", "a", "b"}), 2);
  EXPECT_THAT(error_, StartsWith("Error: accepts at most 1 arg(s), received 2\n\nUsage:\n"
                                 "  agbox sandbox delete [<sandbox_id>] [flags]\n"));
}

TEST_F(SandboxDelete, ByLabelWaitsForAll) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.deleted.emplace();
  daemon.deleted->add_deleted_sandbox_ids("box-1");
  daemon.deleted->add_deleted_sandbox_ids("box-2");
  daemon.deleted->set_deleted_count(2);
  EXPECT_EQ(run({"sandbox", "delete", "--label", "a=b"}), 0);
  EXPECT_THAT(error_, MatchesRegex("Waiting for 2 sandbox\\(es\\) to be deleted\\.\\.\\.\n"
                                   "2 sandbox\\(es\\) deleted in [0-9]+\\.[0-9]s\\.\n"));
  EXPECT_EQ(daemon.calls().front(), "DeleteSandboxes label_selector { key: \"a\" value: \"b\" }");
}

TEST_F(SandboxDelete, ByLabelOneFailureDoesNotHideTheOthers) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.sandboxes["box-1"] = box_in(v1::SANDBOX_STATE_FAILED);
  daemon.sandboxes["box-1"].set_error_message("the engine refused");
  daemon.deleted.emplace();
  daemon.deleted->add_deleted_sandbox_ids("box-1");
  daemon.deleted->add_deleted_sandbox_ids("box-2");
  EXPECT_EQ(run({"sandbox", "delete", "--label", "a=b"}), 1);
  EXPECT_THAT(error_, HasSubstr("sandbox box-1 failed: the engine refused\n"));
  EXPECT_THAT(error_, HasSubstr("\n1 of 2 sandbox(es) deleted in "));
}

TEST_F(SandboxDelete, ByLabelNoMatchIsNoError) {
  test::ScriptedDaemon daemon(socket());
  daemon.deleted.emplace();
  EXPECT_EQ(run({"sandbox", "delete", "--label", "a=b"}), 0);
  EXPECT_EQ(error_, "No sandboxes matched the label selector.\n");
}

TEST_F(SandboxDelete, CtrlCEndsTheWaitAndNotTheDeletion) {
  test::ScriptedDaemon daemon(socket(), prepare);
  daemon.events.clear();
  const auto person = interrupt_at(daemon, "SubscribeSandboxEvents");
  EXPECT_EQ(run({"sandbox", "delete", "box-1"}), 130);
  EXPECT_THAT(error_, HasSubstr("\nStopped waiting; the daemon continues the deletion.\n"));
}

}  // namespace
}  // namespace agbox::cli
