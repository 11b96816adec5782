// SPDX-License-Identifier: Apache-2.0
// Ids, lists, pages, bulk deletes and limits.
#include "control/directory.h"

#include "base/failpoint.h"
#include "model/reasons.h"
#include "model/spec/maxima.h"
#include "unit/control/control_fixture.h"
#include "unit/store/full_disk.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DirectoryTest : public ControlTest {
 protected:
  DirectoryTest() { start(); }

  // Accepted; the next one is a second younger.
  void add(const std::string& id, const LabelMap& labels = {}) {
    ASSERT_TRUE(create(id, spec(labels)).has_value());
    clock_.advance(1s);
  }
  Result<std::vector<std::string>> remove_matching(const LabelMap& selector) {
    google::protobuf::Map<std::string, std::string> labels(selector.begin(), selector.end());
    std::optional<Result<std::vector<std::string>>> reply;
    directory().remove_matching(labels, [&](auto result) { reply = std::move(result); });
    run_until([&] { return reply.has_value(); });
    return *reply;
  }
};

TEST_F(DirectoryTest, MoreCpusThanTheEngineHasAreRefusedAndReserveNothing) {
  // The fake engine has four.
  for (const auto& [cpus, is_accepted] : {std::pair("4.5", false), std::pair("4", true)}) {
    v1::CreateSpec wanted = spec().create_spec;
    wanted.set_cpu_limit(cpus);
    const auto created = create("cpus-1", parse_create_spec(wanted).value());
    ASSERT_EQ(created.has_value(), is_accepted) << cpus;
    if (!created) {
      EXPECT_EQ(created.error().reason(), reason::kInvalidArgument);
      EXPECT_EQ(created.error().message(),
                "cpu_limit: cpu_limit \"4.5\": must be at most 4, the number of CPUs of the "
                "container engine");
    }
  }
}

TEST_F(DirectoryTest, AnIdIsMadeUpWhereNoneIsGiven) {
  const auto created = create("");
  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->sandbox_id().size(), 36U);
}

TEST_F(DirectoryTest, AnIdThatBreaksTheRulesIsRefusedByName) {
  for (const char* id : {"abc", "-abcd", "abcd-", "ab cd", "ab/cd", "ab\ncd"}) {
    const auto refused = create(id);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("sandbox_id"));
  }
  EXPECT_THAT(listed(), IsEmpty());
}

TEST_F(DirectoryTest, OfTwoCreatesOfOneIdAtOnceOneIsAccepted) {
  run_until([&] { return docker().event_streams() == 1; });
  std::vector<Result<v1::SandboxHandle>> replies;
  for (int i = 0; i < 3; ++i) {
    directory().create(spec(), "same-id", [&](auto result) { replies.push_back(result); });
  }
  run_until([&] { return replies.size() == 3; });
  EXPECT_TRUE(replies[0].has_value());
  EXPECT_EQ(replies[1].error().reason(), reason::kSandboxIdAlreadyExists);
  EXPECT_EQ(replies[2].error().reason(), reason::kSandboxIdAlreadyExists);
  wait_for_state("same-id", v1::SANDBOX_STATE_READY);
  EXPECT_EQ(handle("same-id").last_event_sequence(), 3U);
}

TEST_F(DirectoryTest, AnIdIsNeverUsedTwice) {
  create_ready("once-only");
  ASSERT_TRUE(remove("once-only").has_value());
  wait_for_state("once-only", v1::SANDBOX_STATE_DELETED);
  const auto again = create("once-only");
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().reason(), reason::kSandboxIdAlreadyExists);
  EXPECT_EQ(again.error().metadata().at("sandbox_id"), "once-only");
  EXPECT_EQ(state("once-only"), v1::SANDBOX_STATE_DELETED);
}

TEST_F(DirectoryTest, WhatIsNotThereIsNotFoundByName) {
  EXPECT_EQ(directory().get("nobody").error().reason(), reason::kSandboxNotFound);
  EXPECT_EQ(remove("nobody").error().message(), "sandbox nobody was not found");
  EXPECT_FALSE(directory().subscribe(v1::SubscribeSandboxEventsRequest(), [] {}).has_value());
}

TEST_F(DirectoryTest, ListsNewestFirstAndFiltersByAllLabels) {
  add("list-1", {{"team", "a"}, {"kind", "x"}});
  add("list-2", {{"team", "a"}});
  add("list-3", {{"team", "b"}});
  EXPECT_THAT(listed(), ElementsAre("list-3", "list-2", "list-1"));
  v1::ListSandboxesRequest request;
  (*request.mutable_label_selector())["team"] = "a";
  EXPECT_THAT(listed(request), ElementsAre("list-2", "list-1"));
  (*request.mutable_label_selector())["kind"] = "x";
  EXPECT_THAT(listed(request), ElementsAre("list-1"));
  ASSERT_TRUE(remove("list-1").has_value());
  wait_for_state("list-1", v1::SANDBOX_STATE_DELETED);
  EXPECT_THAT(listed(request), IsEmpty());
  request.set_include_deleted(true);
  EXPECT_THAT(listed(request), ElementsAre("list-1"));
}

TEST_F(DirectoryTest, PagesAreStableWhileSandboxesComeAndGo) {
  for (int i = 1; i <= 6; ++i) add("page-" + std::to_string(i));
  v1::ListSandboxesRequest request;
  request.set_page_size(2);
  auto page = directory().list(request).value();
  ASSERT_EQ(page.sandboxes_size(), 2);
  EXPECT_EQ(page.sandboxes(1).sandbox_id(), "page-5");
  // The very one that the token names goes, one of the next page too, and a new one comes.
  for (const char* id : {"page-5", "page-4"}) {
    ASSERT_TRUE(remove(id).has_value());
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
  add("page-7");
  request.set_page_token(page.next_page_token());
  page = directory().list(request).value();
  ASSERT_EQ(page.sandboxes_size(), 2);
  EXPECT_EQ(page.sandboxes(0).sandbox_id(), "page-3");
  EXPECT_EQ(page.sandboxes(1).sandbox_id(), "page-2");
  request.set_page_token(page.next_page_token());
  page = directory().list(request).value();
  ASSERT_EQ(page.sandboxes_size(), 1);
  EXPECT_EQ(page.sandboxes(0).sandbox_id(), "page-1");
  EXPECT_EQ(page.next_page_token(), "");
}

TEST_F(DirectoryTest, ThoseOfOneMomentAreOrderedByIdOverPages) {
  for (const char* id : {"tie-b", "tie-a", "tie-c"}) ASSERT_TRUE(create(id).has_value());
  v1::ListSandboxesRequest request;
  request.set_page_size(1);
  std::vector<std::string> ids;
  do {
    const auto page = directory().list(request).value();
    ids.push_back(page.sandboxes(0).sandbox_id());
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(ids, ElementsAre("tie-a", "tie-b", "tie-c"));
}

TEST_F(DirectoryTest, APageSizeBeyondAllBoundsIsNoPage) {
  add("huge-1");
  add("huge-2");
  v1::ListSandboxesRequest request;
  request.set_page_size(0xFFFF'FFFF);
  EXPECT_THAT(listed(request), ElementsAre("huge-2", "huge-1"));
}

TEST_F(DirectoryTest, APageStaysBelowWhatClientsTake) {
  LabelMap large;
  for (int i = 0; i < 64; ++i) large["key-" + std::to_string(i)] = std::string(4000, 'x');
  for (int i = 0; i < 20; ++i) add("large-" + std::to_string(i), large);
  v1::ListSandboxesRequest request;
  int listed = 0;
  do {
    const auto page = directory().list(request).value();
    EXPECT_LT(page.ByteSizeLong(), std::size_t{4} << 20);
    listed += page.sandboxes_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_EQ(listed, 20);
}

TEST_F(DirectoryTest, AHostilePageTokenIsRefused) {
  v1::ListSandboxesRequest request;
  for (const char* token : {"x", "1", "1/", "1/2", "/1/2", "99999999999999999999/0/a", "1/2x/3"}) {
    request.set_page_token(token);
    const auto refused = directory().list(request);
    ASSERT_FALSE(refused.has_value()) << token;
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
  }
}

TEST_F(DirectoryTest, ADeleteOfManyNeedsASelector) {
  add("kept-1");
  const auto refused = remove_matching({});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message(), "label_selector must not be empty");
  EXPECT_NE(state("kept-1"), v1::SANDBOX_STATE_DELETING);
}

// L18: all that match are on their way, or none was told.
TEST_F(DirectoryTest, ADeleteOfManyNamesThoseItBeganInOrderAndAllComeToTheirEnd) {
  for (const char* id : {"many-c", "many-a", "many-b"}) add(id, {{"team", "a"}});
  add("other-1", {{"team", "b"}});
  ASSERT_TRUE(remove("many-b").has_value());  // on its way already, or gone
  EXPECT_THAT(remove_matching({{"team", "a"}}).value(), ElementsAre("many-a", "many-c"));
  for (const char* id : {"many-a", "many-b", "many-c"}) {
    wait_for_state(id, v1::SANDBOX_STATE_DELETED);
  }
  wait_for_state("other-1", v1::SANDBOX_STATE_READY);
  EXPECT_THAT(remove_matching({{"team", "a"}}).value(), IsEmpty());
  EXPECT_THAT(listed(), ElementsAre("other-1"));
}

TEST_F(DirectoryTest, MoreSandboxesThanTheMaximumAreRefusedUntilOneIsDeleted) {
  run_until([&] { return docker().event_streams() == 1; });
  ASSERT_TRUE(failpoint::arm("create.image.before=hold"));  // none of them troubles the engine
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < maxima::kSandboxes; ++i) {
    directory().create(spec(), "full-" + std::to_string(i),
                       [&](const auto& created) { accepted += created.has_value() ? 1 : 0; });
  }
  // Those that are not on disk yet count too.
  const auto refused = create("too-many");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(refused.error().message(), HasSubstr("4096"));
  run_until([&] { return accepted == maxima::kSandboxes; });
  ASSERT_TRUE(remove("full-7").has_value());
  wait_for_state("full-7", v1::SANDBOX_STATE_DELETED);
  EXPECT_TRUE(create("just-right").has_value());
}

TEST_F(DirectoryTest, WithoutRoomOnTheDiskNewSandboxesAreRefusedAndOldOnesGoOn) {
  create_ready("old-1");
  stop();
  ballast_bytes_ = std::uint64_t{1} << 60;  // more than any disk has
  start();
  const auto refused = create("new-1");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
  EXPECT_FALSE(directory().get("new-1").has_value());
  ASSERT_TRUE(remove("old-1").has_value());
  wait_for_state("old-1", v1::SANDBOX_STATE_DELETED);
}

// About 1.9 MiB.
SandboxSpec large_spec() {
  v1::CreateSpec wanted;
  wanted.set_image("busybox");
  for (int i = 0; i < 19; ++i) {
    (*wanted.mutable_envs())["LARGE_" + std::to_string(i)] = std::string(100 << 10, 'x');
  }
  return parse_create_spec(std::move(wanted)).value();
}

TEST_F(DirectoryTest, SpecsOfAllSandboxesHaveALimit) {
  create_ready("large-1", large_spec());
  docker().stop_listening();
  stop();
  start();
  // They wait for the engine's first answer.
  const std::size_t fitting = maxima::kAllSpecBytes / large_spec().bytes;
  std::vector<Reason> refusals;
  const auto note = [&](const auto& created) { refusals.push_back(created.error().reason()); };
  for (std::size_t i = 1; i < fitting; ++i) {
    directory().create(large_spec(), "large-1" + std::to_string(i), note);
  }
  directory().create(large_spec(), "too-large", note);
  run_until([&] { return !refusals.empty(); });
  EXPECT_THAT(refusals, ElementsAre(reason::kResourceExhausted));
  // None was accepted, so none counts any more.
  run_until([&] { return refusals.size() == fitting; });
  directory().create(large_spec(), "fits-again", note);
  run_until([&] { return refusals.size() == fitting + 1; });
  EXPECT_EQ(refusals.back(), reason::kEngineUnavailable);
}

TEST_F(DirectoryTest, CallsThatWaitForTheEngineHaveALimit) {
  create_ready("box-1");
  stop();
  start();
  std::size_t refused = 0;
  std::size_t answered = 0;
  const auto note = [&](const auto& result) {
    ++answered;
    refused += !result && result.error().reason() == reason::kResourceExhausted ? 1 : 0;
  };
  directory().create(spec(), "new-1", note);
  directory().remove("new-1", note);
  for (std::size_t i = 2; i < maxima::kWaitingCalls; ++i) directory().resume("box-1", note);
  directory().create(spec(), "new-2", note);
  directory().resume("box-1", note);
  directory().remove("new-1", note);
  run_until([&] { return answered >= 3; });
  EXPECT_EQ(refused, 3U);
  run_until([&] { return answered == maxima::kWaitingCalls + 3; });
  EXPECT_EQ(refused, 3U);
  wait_for_state("new-1", v1::SANDBOX_STATE_DELETED);
}

class FullDiskTest : public DirectoryTest {
 protected:
  FullDiskTest() {
    stop();
    store_vfs_ = full_disk::install();
    start();
    create_ready("box-1", spec({{"team", "a"}}));
    full_disk::is_full = true;
  }
  ~FullDiskTest() override { full_disk::is_full = false; }
};

TEST_F(FullDiskTest, DoesNotHoldTheEndOfTheDaemon) {
  std::optional<Result<>> reply;
  directory().remove("box-1", [&](Result<> result) { reply = std::move(result); });
  release_waiting_calls();
  run_until([&] { return reply.has_value(); });
  ASSERT_FALSE(reply->has_value());
  EXPECT_EQ(reply->error().reason(), reason::kShuttingDown);
  stop();
  full_disk::is_full = false;
  start();
  EXPECT_EQ(state("box-1"), v1::SANDBOX_STATE_READY) << "nobody was told that it is deleted";
}

TEST_F(FullDiskTest, ADeleteOfManyThatIsNotRecordedIsNotToldAsBegun) {
  std::optional<Result<std::vector<std::string>>> reply;
  google::protobuf::Map<std::string, std::string> labels;
  labels["team"] = "a";
  directory().remove_matching(labels, [&](auto result) { reply = std::move(result); });
  release_waiting_calls();
  run_until([&] { return reply.has_value(); });
  ASSERT_FALSE(reply->has_value());
  EXPECT_EQ(reply->error().reason(), reason::kShuttingDown);
  stop();
}

}  // namespace
}  // namespace agbox
