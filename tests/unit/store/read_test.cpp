// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "model/reasons.h"
#include "unit/store/store_fixture.h"

namespace agbox {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ReadTest : public StoreTest {
 protected:
  ReadTest() { open(); }
  // Changes made with the sqlite3 shell.
  void damage(const std::string& sql) {
    store_.reset();
    sqlite3* handle = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(handle);
    sqlite3_close(handle);
    open();
  }
};

TEST_F(ReadTest, PagesRespectBothLimitsButHaveAtLeastOneEvent) {
  ASSERT_TRUE(append(create("s-01")));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(append(event("s-01")));
  EXPECT_THAT(events("s-01")->events, SizeIs(10));
  EXPECT_THAT(events("s-01", 8)->events, SizeIs(2));
  EXPECT_THAT(events("s-01", 10)->events, IsEmpty());
  EXPECT_THAT(events("s-01", UINT64_MAX)->events, IsEmpty());
  EXPECT_EQ(events("s-01", UINT64_MAX)->newest_sequence, 10U);
  EXPECT_THAT(events("s-01", 3, 4)->events, SizeIs(4));
  EXPECT_THAT(events("s-01", 3, 0)->events, SizeIs(1));
  EXPECT_THAT(events("s-01", 3, 4, 1)->events, SizeIs(1));
  const std::size_t size = events("s-01")->events[0].bytes.size();
  EXPECT_THAT(events("s-01", 0, 10, 3 * size)->events, SizeIs(3));
  EXPECT_EQ(
      events("nobody").error(),
      Error(reason::kSandboxNotFound, "sandbox nobody was not found", {{"sandbox_id", "nobody"}}));
}

TEST_F(ReadTest, EverythingIsTheSameAfterARestart) {
  ASSERT_TRUE(append(Change{{create("s-01"), event("s-01"), exec("s-01", "exec")}}));
  store::v1::Container container;
  container.set_container_id("c0ffee");
  container.set_start_count(2);
  container.set_secret(std::string("\0\xFF", 2));
  const WallTime later = clock_.wall_now() + std::chrono::nanoseconds(123456789);
  ASSERT_TRUE(append(
      Change{{change::PutContainer{"s-01", "", container}, change::PutContainer{"s-01", "db", {}},
              change::SetSubnet{"s-01", "10.201.0.0/28"},
              change::SetOperation{"s-01", {Operation::Stopping, "idle_ttl", 3}},
              change::SetStatus{"s-01", {v1::SANDBOX_STATE_FAILED, later, "CODE", "words"}},
              change::SetQuietSince{"s-01", {later, BootTime(7), "boot"}},
              event("s-01", v1::SANDBOX_FAILED)}}));
  const auto before = events("s-01");
  ASSERT_TRUE(before.has_value());
  const std::string instance = store().instance_id();
  EXPECT_THAT(instance, SizeIs(36));

  open();
  EXPECT_EQ(store().instance_id(), instance);
  const auto after = events("s-01");
  ASSERT_THAT(after->events, SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(after->events[i].bytes, before->events[i].bytes);

  const auto loaded = store().load();
  ASSERT_TRUE(loaded.has_value());
  ASSERT_THAT(loaded->sandboxes, SizeIs(1));
  const SandboxRecord& sandbox = loaded->sandboxes[0];
  EXPECT_EQ(sandbox.sandbox_id, "s-01");
  EXPECT_EQ(sandbox.created_at, clock_.wall_now());
  EXPECT_EQ(sandbox.status.state, v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(sandbox.status.changed_at, later);
  EXPECT_EQ(sandbox.status.error_code, "CODE");
  EXPECT_EQ(sandbox.status.error_message, "words");
  EXPECT_EQ(sandbox.operation.operation, Operation::Stopping);
  EXPECT_EQ(sandbox.operation.reason, "idle_ttl");
  EXPECT_EQ(sandbox.operation.attempts, 3U);
  EXPECT_EQ(sandbox.subnet, "10.201.0.0/28");
  EXPECT_EQ(sandbox.deleted_at, std::nullopt);
  EXPECT_EQ(sandbox.quiet_since, (Moment{.wall = later, .boot = BootTime(7), .boot_id = "boot"}));
  EXPECT_EQ(sandbox.spec.image(), "image-of-s-01");
  EXPECT_EQ(sandbox.created_with.engine_id(), "engine");
  ASSERT_THAT(sandbox.containers, SizeIs(2));
  EXPECT_EQ(sandbox.containers.at("").SerializeAsString(), container.SerializeAsString());
  ASSERT_THAT(sandbox.running_execs, SizeIs(1));
  EXPECT_EQ(sandbox.running_execs[0].record.stdout_log_path(), "/logs/exec.stdout.log");
  EXPECT_EQ(sandbox.newest_sequence, 2U);
  EXPECT_EQ(sandbox.newest_event_at, std::chrono::floor<std::chrono::seconds>(clock_.wall_now()));
}

TEST_F(ReadTest, EndedExecsAreReadOnDemand) {
  ASSERT_TRUE(append(Change{{create("s-01"), exec("s-01", "exec-b"), exec("s-01", "exec-a")}}));
  change::UpdateExec end{"exec-b", v1::EXEC_STATE_FAILED, exec("s-01", "exec-b").record};
  end.record.set_exit_code(3);
  end.record.mutable_ended_at()->set_seconds(1'700'000'123);
  end.record.mutable_usage()->set_peak_memory_bytes(42);
  ASSERT_TRUE(append(end));

  const auto one = ask<ExecRecord>([&](auto done) { store().read_exec("exec-b", done); });
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->sandbox_id, "s-01");
  EXPECT_EQ(one->state, v1::EXEC_STATE_FAILED);
  EXPECT_EQ(one->record.SerializeAsString(), end.record.SerializeAsString());
  EXPECT_THAT(one->request.command(), ElementsAre("true"));
  const auto all =
      ask<ExecPage>([&](auto done) { store().read_execs("s-01", 0, SIZE_MAX, SIZE_MAX, done); });
  ASSERT_THAT(all->execs, SizeIs(2));
  EXPECT_EQ(all->execs[0].request.exec_id(), "exec-b");
  EXPECT_FALSE(all->has_more);

  const auto loaded = store().load();
  const SandboxRecord& sandbox = loaded->sandboxes.at(0);
  ASSERT_THAT(sandbox.running_execs, SizeIs(1));
  EXPECT_EQ(sandbox.running_execs[0].request.exec_id(), "exec-a");
  EXPECT_EQ(sandbox.last_exec_ended_at, WallTime(std::chrono::seconds(1'700'000'123)));
}

TEST_F(ReadTest, ExecsAreReadInStartOrderAndInPages) {
  ASSERT_TRUE(append(create("s-01")));
  ASSERT_TRUE(append(create("s-02")));
  for (const char* id : {"zzzz", "mmmm", "aaaa", "nnnn"}) {
    ASSERT_TRUE(append(exec("s-01", id)));
    ASSERT_TRUE(append(exec("s-02", std::string("other-") + id)));
  }
  const auto page = [&](std::uint64_t after, std::size_t count, std::size_t bytes) {
    return *ask<ExecPage>(
        [&](auto done) { store().read_execs("s-01", after, count, bytes, done); });
  };
  const auto ids = [](const ExecPage& read) {
    std::string text;
    for (const ExecRecord& one : read.execs) text += one.request.exec_id() + " ";
    return text + (read.has_more ? "and more" : "end");
  };
  const ExecPage first = page(0, 3, SIZE_MAX);
  EXPECT_EQ(ids(first), "zzzz mmmm aaaa and more");
  EXPECT_EQ(ids(page(first.last, 3, SIZE_MAX)), "nnnn end");
  // At least one, however large.
  const ExecPage small = page(0, SIZE_MAX, 1);
  EXPECT_EQ(ids(small), "zzzz and more");
  EXPECT_EQ(ids(page(small.last, SIZE_MAX, 1)), "mmmm and more");
  EXPECT_EQ(ids(page(first.last + 1000, 3, SIZE_MAX)), "end");
  const auto unknown =
      ask<ExecPage>([&](auto done) { store().read_execs("s-09", 0, SIZE_MAX, SIZE_MAX, done); });
  EXPECT_EQ(unknown.error().reason(), reason::kSandboxNotFound);
}

TEST_F(ReadTest, PurgedSandboxesAreReservedWithoutARecord) {
  for (const char* id : {"s-01", "s-02"}) ASSERT_TRUE(append(create(id)));
  ASSERT_TRUE(append(change::MarkDeleted{"s-02", clock_.wall_now()}));
  const auto purged = [&] {
    return *ask<std::vector<std::string>>(
        [&](auto done) { store().read_purged({"s-01", "s-02", "never-1"}, done); });
  };
  EXPECT_THAT(purged(), IsEmpty());
  ASSERT_TRUE(append(change::Purge{"s-02"}));
  EXPECT_THAT(purged(), ElementsAre("s-02"));
}

TEST_F(ReadTest, ABrokenSandboxDoesNotAffectOthers) {
  for (const char* id : {"good", "spec", "with", "stat", "oper", "cont", "exec", "even", "orig"}) {
    ASSERT_TRUE(append(Change{{create(id), event(id), change::PutContainer{id, "", {}},
                               exec(id, std::string("exec-of-") + id)}}));
  }
  const auto number = [](const std::string& id) {
    return "(SELECT number FROM sandbox WHERE sandbox_id = '" + id + "')";
  };
  damage("UPDATE sandbox_origin SET spec = x'ff' WHERE sandbox = " + number("spec") +
         "; UPDATE sandbox_origin SET created_with = x'ff' WHERE sandbox = " + number("with") +
         "; UPDATE sandbox SET state = 77 WHERE sandbox_id = 'stat'" +
         "; UPDATE sandbox SET operation = -1 WHERE sandbox_id = 'oper'" +
         "; UPDATE container SET record = x'ff' WHERE sandbox = " + number("cont") +
         "; UPDATE exec SET request = x'ff' WHERE sandbox = " + number("exec") +
         "; UPDATE event SET body = x'ff' WHERE sandbox = " + number("even") +
         "; UPDATE event SET body = (SELECT body FROM event WHERE sandbox = " + number("good") +
         ") WHERE sandbox = " + number("orig"));
  const auto loaded = store().load();
  ASSERT_TRUE(loaded.has_value());
  ASSERT_THAT(loaded->sandboxes, SizeIs(1));
  EXPECT_EQ(loaded->sandboxes[0].sandbox_id, "good");
  std::vector<std::string> reasons;
  std::vector<std::string> with_rest;
  for (const BrokenSandbox& broken : loaded->broken) {
    reasons.push_back(broken.sandbox_id + ": " + broken.why);
    if (!broken.rest) continue;
    with_rest.push_back(broken.sandbox_id);
    EXPECT_EQ(broken.rest->sandbox_id, broken.sandbox_id);
    EXPECT_EQ(broken.rest->newest_sequence, 1U);
  }
  EXPECT_THAT(with_rest, ElementsAre("spec", "with", "cont", "exec"));
  EXPECT_THAT(reasons, ElementsAre("spec: stored spec is not a CreateSpec",
                                   "with: stored configuration is not a CreatedWith",
                                   "stat: stored state 77 is unknown",
                                   "oper: stored operation -1 is unknown",
                                   "cont: stored container \"\" is not a Container",
                                   "exec: stored exec exec-of-exec has no readable request",
                                   "even: stored event 1 is not a SandboxEvent",
                                   "orig: stored event 1 does not match its key"));
  EXPECT_THAT(events("even").error().message(),
              HasSubstr("sandbox even: stored event 1 is not a SandboxEvent"));
}

}  // namespace
}  // namespace agbox
