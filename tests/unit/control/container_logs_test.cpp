// SPDX-License-Identifier: Apache-2.0
// Reading the logs of containers: which one is meant, followers across restarts, outages and the
// end of their container, and what a slow or leaving reader costs.
#include "control/log/container_logs.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>

#include "async/event.h"
#include "model/object_names.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using testing::HasSubstr;

class ContainerLogsTest : public ControlTest {
 protected:
  ContainerLogsTest() {
    engine().add_image("db");
    start();
    wait_swept();
  }

  static SandboxSpec with_db(const std::string& image = "db") {
    v1::CreateSpec spec;
    const bool is_valid = google::protobuf::TextFormat::ParseFromString(
        "image: 'busybox' optional_services { name: 'db' image: '" + image + "' }", &spec);
    AGBOX_CHECK(is_valid, "a spec of a test");
    return parse_create_spec(std::move(spec)).value();
  }
  void create_with_db() {
    create_ready("box-1", with_db());
    run_until([&] { return handle("box-1").companions(0).state() == v1::COMPANION_STATE_READY; });
  }
  fake::Container& db() { return *engine().find_container("agbox-cc-box-1-db"); }
  void print(const std::string& lines) { engine().print(db(), lines); }

  // A client.
  struct Reading {
    explicit Reading(boost::asio::io_context& io) : may_go_on(io.get_executor()) {
      may_go_on.set();
    }
    std::string printed;
    std::string cursor;
    int pieces = 0;
    Event may_go_on;  // to the next piece
    std::optional<Result<>> end;
    std::optional<Task> task;

    bool is_open() const { return pieces > 0; }
  };
  std::shared_ptr<Reading> read(LogQuery query, const std::string& container = "db",
                                const std::string& sandbox_id = "box-1") {
    auto reading = std::make_shared<Reading>(loop_.io());
    auto write = [reading](LogPiece piece) -> asio::awaitable<bool> {
      ++reading->pieces;
      reading->printed += piece.data;
      reading->cursor = cursor_of(piece.end);
      co_return co_await reading->may_go_on.wait();
    };
    reading->task = plane().read_log({sandbox_id, container, query}, write,
                                     [reading](const Result<>& end) { reading->end = end; });
    return reading;
  }
  std::shared_ptr<Reading> follow(LogQuery query = {}, const std::string& container = "db") {
    // Lines have the time of this machine, and one who follows compares it with the daemon's.
    clock_.jump_wall(std::chrono::system_clock::now() - clock_.wall_now());
    query.follow = true;
    auto reading = read(query, container);
    run_until([&] { return reading->is_open(); });
    return reading;
  }
  std::string read_all(const LogQuery& query, const std::string& container = "db") {
    const auto reading = read(query, container);
    wait_for_end(*reading);
    EXPECT_TRUE(reading->end->has_value()) << reading->end->error().message();
    return reading->printed;
  }
  Error refusal(const LogQuery& query, const std::string& container,
                const std::string& sandbox_id = "box-1") {
    const auto reading = read(query, container, sandbox_id);
    wait_for_end(*reading);
    EXPECT_FALSE(reading->end->has_value());
    return reading->end->error();
  }
  void wait_for_end(const Reading& reading) {
    run_until([&] { return reading.end.has_value(); });
  }
  void wait_for_output(const Reading& reading, const std::string& printed) {
    run_until([&] { return reading.printed == printed; });
  }
};

TEST_F(ContainerLogsTest, OfEachContainerByName) {
  create_with_db();
  print("one\ntwo\n");
  engine().print(*engine().find_container(primary_container_name("box-1")), "primary\n", 2);
  EXPECT_EQ(read_all({}), "one\ntwo\n");
  EXPECT_EQ(read_all({.tail = 1}), "two\n");
  EXPECT_EQ(read_all({.with_stdout = false}), "");
  EXPECT_EQ(read_all({}, ""), "primary\n");
  EXPECT_EQ(read_all({}, "primary"), "primary\n");
}

TEST_F(ContainerLogsTest, AnUnknownNameIsAnsweredWithTheNames) {
  create_with_db();
  const Error unknown = refusal({}, "web");
  EXPECT_EQ(unknown.reason(), reason::kContainerNotFound);
  EXPECT_THAT(unknown.message(), HasSubstr("no container \"web\""));
  EXPECT_THAT(unknown.message(), HasSubstr("primary, db"));
  EXPECT_EQ(refusal({}, "db", "nope").reason(), reason::kSandboxNotFound);
}

TEST_F(ContainerLogsTest, AFollowerWaitsForOneThatIsBeingCreated) {
  docker().hold("POST /images/create");
  create_ready("box-1", with_db("missing"));
  run_until([&] { return docker().held("POST /images/create") == 1; });
  const Error not_yet = refusal({}, "db");
  EXPECT_EQ(not_yet.reason(), reason::kContainerNotFound);
  EXPECT_THAT(not_yet.message(), HasSubstr("still being created"));
  const auto waiting = read({.follow = true});
  engine().registry["docker.io/library/missing:latest"] = {};
  docker().release("POST /images/create");
  run_until([&] { return waiting->is_open(); });
  print("hello\n");
  wait_for_output(*waiting, "hello\n");
}

TEST_F(ContainerLogsTest, OneThatWasNeverCreatedSaysWhy) {
  docker().hold("POST /images/create");
  create_ready("box-1", with_db("missing"));
  const auto waiting = read({.follow = true});
  docker().release("POST /images/create");
  wait_for_end(*waiting);
  ASSERT_FALSE(waiting->end->has_value());
  EXPECT_EQ(waiting->end->error().reason(), reason::kContainerNotFound);
  EXPECT_THAT(waiting->end->error().message(), HasSubstr("pull access denied"));
}

TEST_F(ContainerLogsTest, AFollowerGetsLinesAsTheyArePrinted) {
  create_with_db();
  print("before\n");
  const auto all = follow();
  const auto new_ones = follow({.tail = 0});
  print("after\n");
  wait_for_output(*all, "before\nafter\n");
  wait_for_output(*new_ones, "after\n");
  EXPECT_FALSE(all->end);
}

TEST_F(ContainerLogsTest, AFollowerGoesOnWithTheNextStart) {
  create_with_db();
  print("first\n");
  const auto reading = follow();
  const auto silent = follow({.tail = 0});
  engine().end_container(db(), 1);
  run_until([&] { return db().exits == 1 && db().is_running(); });
  print("second\n");
  wait_for_output(*reading, "first\nsecond\n");
  wait_for_output(*silent, "second\n");
  stop_sandbox("box-1");
  run_until_idle();
  EXPECT_FALSE(reading->end) << "it may be resumed";
  resume_sandbox("box-1");
  run_until([&] { return db().is_running(); });
  print("third\n");
  wait_for_output(*reading, "first\nsecond\nthird\n");
  wait_for_output(*silent, "second\nthird\n");
}

TEST_F(ContainerLogsTest, AFollowerEndsWithItsSandbox) {
  create_with_db();
  print("one\n");
  const auto running = follow();
  const auto primary = follow({}, "primary");
  ASSERT_TRUE(remove("box-1").has_value());
  wait_for_end(*running);
  wait_for_end(*primary);
  EXPECT_TRUE(running->end->has_value()) << running->end->error().message();
  EXPECT_TRUE(primary->end->has_value()) << primary->end->error().message();
  EXPECT_EQ(running->printed, "one\n");
  wait_for_state("box-1", v1::SANDBOX_STATE_DELETED);
  const Error gone = refusal({}, "db");
  EXPECT_EQ(gone.reason(), reason::kContainerNotFound);
  EXPECT_THAT(gone.message(), HasSubstr("is deleted"));
}

TEST_F(ContainerLogsTest, AFollowerEndsWithAContainerThatIsBeingRemoved) {
  create_with_db();
  const auto reading = follow();
  docker().reply("GET /containers/*/logs", 409,
                 R"({"message":"can not get logs from container which is dead or marked for )"
                 R"(removal"})");
  engine().end_container(db(), 1);
  wait_for_end(*reading);
  EXPECT_TRUE(reading->end->has_value()) << reading->end->error().message();
  EXPECT_EQ(refusal({}, "db").reason(), reason::kContainerNotFound);
}

TEST_F(ContainerLogsTest, AFollowerOfAStoppedContainerEndsWithItsSandbox) {
  create_with_db();
  stop_sandbox("box-1");
  const auto reading = follow();
  run_until_idle();
  EXPECT_FALSE(reading->end);
  ASSERT_TRUE(remove("box-1").has_value());
  wait_for_end(*reading);
  EXPECT_TRUE(reading->end->has_value()) << reading->end->error().message();
}

TEST_F(ContainerLogsTest, AFollowerOutlivesAnOutageOfTheEngineAndRepeatsNothing) {
  create_with_db();
  print("one\n");
  const auto reading = follow();
  wait_for_output(*reading, "one\n");
  docker().stop_listening();
  wait_for_loss_of_engine();
  print("two\n");
  docker().listen();
  wait_for_output(*reading, "one\ntwo\n");
  EXPECT_FALSE(reading->end);
}

TEST_F(ContainerLogsTest, WithoutTheEngineThereIsNoLog) {
  create_with_db();
  docker().stop_listening();
  wait_for_loss_of_engine();
  EXPECT_EQ(refusal({}, "db").reason(), reason::kEngineUnavailable);
  EXPECT_EQ(refusal({.follow = true}, "db").reason(), reason::kEngineUnavailable);
}

TEST_F(ContainerLogsTest, ASlowReaderIsNotReadAheadOf) {
  create_with_db();
  const auto reading = follow();
  reading->may_go_on.reset();
  const int before = reading->pieces;
  const std::string line = std::string(1000, 'x') + "\n";
  std::string printed;
  for (int i = 0; i < 2000; ++i) printed += line;  // 2 MB
  print(printed);
  run_until([&] { return reading->pieces == before + 1; });
  run_until_idle();
  EXPECT_EQ(reading->pieces, before + 1);
  EXPECT_LT(reading->printed.size(), 64U << 10U);
  reading->may_go_on.set();
  wait_for_output(*reading, printed);
}

TEST_F(ContainerLogsTest, AReaderThatLeavesFreesItsConnection) {
  create_with_db();
  const auto waiting = follow();
  const auto stalled = follow();
  stalled->may_go_on.reset();
  print("x\n");
  run_until([&] { return stalled->printed == "x\n"; });
  const int before = docker().open_connections();
  waiting->task->cancel();
  stalled->task->cancel();
  wait_for_end(*waiting);
  wait_for_end(*stalled);
  EXPECT_EQ(stalled->end->error().reason(), reason::kCancelled);
  run_until([&] { return docker().open_connections() == before - 2; });
}

TEST_F(ContainerLogsTest, ACursorContinuesWhereAnotherReaderEnded) {
  create_with_db();
  print("one\ntwo\n");
  const auto first = read({.tail = 1});
  wait_for_end(*first);
  print("three\n");
  EXPECT_EQ(read_all({.after = parse_cursor(first->cursor).value()}), "three\n");
}

TEST_F(ContainerLogsTest, TooManyReadersAreRefused) {
  create_with_db();
  std::vector<std::shared_ptr<Reading>> readers;
  for (std::size_t i = 0; i < maxima::kLogReaders; ++i) readers.push_back(read({.follow = true}));
  run_until(
      [&] { return std::ranges::all_of(readers, [](const auto& one) { return one->is_open(); }); });
  const Error refused = refusal({}, "db");
  EXPECT_EQ(refused.reason(), reason::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("256"));
  readers.front()->task->cancel();
  wait_for_end(*readers.front());
  EXPECT_EQ(read_all({}), "");
}

TEST_F(ContainerLogsTest, ShuttingDownEndsFollowers) {
  create_with_db();
  const auto running = follow();
  stop();
  EXPECT_TRUE(running->end.has_value());
}

}  // namespace
}  // namespace agbox
