// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <thread>

#include "model/reasons.h"
#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class AppendTest : public StoreTest {
 protected:
  AppendTest() { open(); }
  std::vector<std::uint64_t> sequences(const std::string& id) {
    std::vector<std::uint64_t> all;
    const auto page = events(id);
    if (!page) return all;
    for (const StoredEvent& stored : page->events) all.push_back(stored.event.sequence());
    return all;
  }
};

TEST_F(AppendTest, TheStoreAssignsSequencesAndEventIds) {
  const auto committed = append(Change{{create("s-01"), event("s-01"), event("s-01")}});
  ASSERT_TRUE(committed.has_value());
  ASSERT_THAT(committed->events, SizeIs(2));
  EXPECT_EQ(committed->events[0].event.sequence(), 1U);
  EXPECT_EQ(committed->events[1].event.event_id(), "s-01-2");
  EXPECT_EQ(committed->events[1].bytes, committed->events[1].event.SerializeAsString());
  EXPECT_THAT(sequences("s-01"), ElementsAre(1, 2));
}

TEST_F(AppendTest, ASandboxIdIsReservedForever) {
  ASSERT_TRUE(append(create("s-01")));
  const Error expected(reason::kSandboxIdAlreadyExists, "sandbox_id s-01 already exists",
                       {{"sandbox_id", "s-01"}});
  EXPECT_EQ(append(create("s-01")).error(), expected);
  ASSERT_TRUE(
      append(Change{{change::MarkDeleted{"s-01", clock_.wall_now()}, change::Purge{"s-01"}}}));
  EXPECT_EQ(append(create("s-01")).error(), expected);
  open();
  EXPECT_EQ(append(create("s-01")).error(), expected);
}

TEST_F(AppendTest, ExecIdsHaveTheirOwnNamespaceAndAreReservedForever) {
  ASSERT_TRUE(append(Change{{create("s-01"), create("s-02"), exec("s-01", "s-01")}}));
  const Error expected(reason::kExecIdAlreadyExists, "exec_id s-01 already exists",
                       {{"exec_id", "s-01"}});
  EXPECT_EQ(append(exec("s-02", "s-01")).error(), expected);
  ASSERT_TRUE(
      append(Change{{change::MarkDeleted{"s-01", clock_.wall_now()}, change::Purge{"s-01"}}}));
  EXPECT_EQ(append(exec("s-02", "s-01")).error(), expected);
}

TEST_F(AppendTest, ARefusedChangeLeavesNothingAndNoGap) {
  ASSERT_TRUE(append(Change{{create("s-01"), event("s-01"), exec("s-01", "exec")}}));
  EXPECT_FALSE(append(Change{{event("s-01"), create("s-02"), exec("s-01", "exec")}}));
  ASSERT_TRUE(append(Change{{event("s-01"), create("s-02")}}));
  EXPECT_THAT(sequences("s-01"), ElementsAre(1, 2));
}

TEST_F(AppendTest, ARefusalAffectsOneChangeOfABatchOnly) {
  ASSERT_TRUE(append(create("s-01")));
  std::vector<std::string> answers;
  for (int i = 0; i < 50; ++i) {
    const Mutation mutation = i % 2 == 0 ? Mutation(create("s-01")) : Mutation(event("s-01"));
    store().append(Change{{mutation}}, [&, i](const Result<Committed>& result) {
      answers.push_back(std::to_string(i) + (result ? " ok" : " refused"));
    });
  }
  mailbox_.run_until([&] { return answers.size() == 50; });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(answers[static_cast<std::size_t>(i)],
              std::to_string(i) + (i % 2 == 0 ? " refused" : " ok"));
  }
  EXPECT_THAT(sequences("s-01"), SizeIs(25));
}

TEST_F(AppendTest, MutationsOfUnknownObjectsAreRefused) {
  ASSERT_TRUE(append(create("s-01")));
  const Error no_sandbox(reason::kSandboxNotFound, "sandbox nobody was not found",
                         {{"sandbox_id", "nobody"}});
  EXPECT_EQ(append(event("nobody")).error(), no_sandbox);
  EXPECT_EQ(append(change::SetStatus{"nobody", {}}).error(), no_sandbox);
  EXPECT_EQ(append(change::SetQuietSince{"nobody", {}}).error(), no_sandbox);
  EXPECT_EQ(append(change::SetOperation{"nobody", {}}).error(), no_sandbox);
  EXPECT_EQ(append(change::SetSubnet{"nobody", "10.0.0.0/28"}).error(), no_sandbox);
  EXPECT_EQ(append(change::PutContainer{"nobody", "", {}}).error(), no_sandbox);
  EXPECT_EQ(append(change::ForgetContainers{"nobody"}).error(), no_sandbox);
  EXPECT_EQ(append(change::MarkDeleted{"nobody", {}}).error(), no_sandbox);
  EXPECT_EQ(append(exec("nobody", "exec")).error(), no_sandbox);
  EXPECT_EQ(append(change::UpdateExec{"nothing", v1::EXEC_STATE_FAILED, {}}).error(),
            Error(reason::kExecNotFound, "exec nothing was not found", {{"exec_id", "nothing"}}));
  EXPECT_THAT(append(change::Purge{"s-01"}).error().message(), HasSubstr("no deleted sandbox"));
}

TEST_F(AppendTest, TextThatIsNotUtf8IsRefused) {
  ASSERT_TRUE(append(create("s-01")));
  change::AppendEvent bad = event("s-01");
  bad.event.mutable_sandbox_phase()->set_error_message("engine said \xFF");
  EXPECT_THAT(append(bad).error().message(), HasSubstr("not UTF-8"));
  change::CreateSandbox bad_spec = create("s-02");
  bad_spec.spec.set_image("\xC3");
  EXPECT_THAT(append(bad_spec).error().message(), HasSubstr("not UTF-8"));
  EXPECT_TRUE(append(create("s-02")));
  EXPECT_THAT(sequences("s-01"), IsEmpty());
}

TEST_F(AppendTest, ASubnetBelongsToOneLiveSandbox) {
  ASSERT_TRUE(append(Change{{create("s-01"), create("s-02")}}));
  ASSERT_TRUE(append(change::SetSubnet{"s-01", "10.201.0.16/28"}));
  EXPECT_THAT(append(change::SetSubnet{"s-02", "10.201.0.16/28"}).error().message(),
              HasSubstr("subnet 10.201.0.16/28 for sandbox s-02 belongs to another sandbox"));
  ASSERT_TRUE(append(change::MarkDeleted{"s-01", clock_.wall_now()}));
  EXPECT_TRUE(append(change::SetSubnet{"s-02", "10.201.0.16/28"}));
  EXPECT_TRUE(append(change::SetSubnet{"s-02", std::nullopt}));
}

TEST_F(AppendTest, ManyThreadsShareCommitsAndKeepTheirOrder) {
  constexpr int kThreads = 8;
  constexpr int kEach = 100;
  for (int t = 0; t < kThreads; ++t) ASSERT_TRUE(append(create("sandbox-" + std::to_string(t))));
  std::vector<std::thread> threads;
  int answered = 0;  // used by this thread only: callbacks run in run_until()
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        change::AppendEvent next = event("sandbox-" + std::to_string(t));
        next.event.mutable_sandbox_phase()->set_phase(std::to_string(i));
        store().append(Change{{std::move(next)}}, [&, i](const Result<Committed>& result) {
          ++answered;
          ASSERT_TRUE(result.has_value());
          EXPECT_EQ(result->events[0].event.sequence(), static_cast<std::uint64_t>(i + 1));
          EXPECT_EQ(result->events[0].event.sandbox_phase().phase(), std::to_string(i));
        });
      }
    });
  }
  mailbox_.run_until([&] { return answered == kThreads * kEach; });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(AppendTest, ClosingWritesWhatIsQueued) {
  ASSERT_TRUE(append(create("s-01")));
  for (int i = 0; i < 500; ++i) store().append(Change{{event("s-01")}}, [](auto) {});
  open();
  EXPECT_THAT(sequences("s-01"), SizeIs(500));
}

TEST_F(AppendTest, TheLogIsKeptShort) {
  ASSERT_TRUE(append(create("s-01")));
  change::AppendEvent large = event("s-01");
  large.event.mutable_sandbox_phase()->set_error_message(std::string(100'000, 'x'));
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(append(large));
  EXPECT_LT(std::filesystem::file_size(path_.string() + "-wal"), 16U << 20);
  EXPECT_GT(std::filesystem::file_size(path_), 20U << 20);
}

TEST_F(AppendTest, PurgeRemovesAllButTheReservations) {
  ASSERT_TRUE(append(Change{{create("s-01"), event("s-01"), exec("s-01", "exec"),
                             change::PutContainer{"s-01", "", {}}, create("s-02")}}));
  ASSERT_TRUE(append(change::MarkDeleted{"s-01", clock_.wall_now()}));
  ASSERT_TRUE(append(change::Purge{"s-01"}));
  EXPECT_EQ(events("s-01").error().reason(), reason::kSandboxNotFound);
  const auto read_exec = ask<ExecRecord>([&](auto done) { store().read_exec("exec", done); });
  EXPECT_EQ(read_exec.error().reason(), reason::kExecNotFound);
  const auto loaded = store().load();
  ASSERT_TRUE(loaded.has_value());
  ASSERT_THAT(loaded->sandboxes, SizeIs(1));
  EXPECT_EQ(loaded->sandboxes[0].sandbox_id, "s-02");
  EXPECT_THAT(loaded->broken, IsEmpty());
}

}  // namespace
}  // namespace agbox
