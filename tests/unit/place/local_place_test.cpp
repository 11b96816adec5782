// SPDX-License-Identifier: Apache-2.0
// What LocalPlace adds to links, log files and firewall: which directories it makes and removes,
// and which files an exec gets.
#include "place/local/local_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <fstream>
#include <optional>

#include "guestwire/place.h"
#include "unit/guestlink/scripted_guest.h"
#include "unit/place/fake_isolation.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using guestlink::LinkDirectory;
using guestlink::ScriptedGuest;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

class LocalPlaceTest : public testing::Test, private GuestListener {
 protected:
  LocalPlaceTest() : isolation_(io_), guest_(io_.get_executor()) {
    set_log_level(LogLevel::Error);
    std::ofstream(temp_directory_.path() / "agbox-guest") << "a guest program";
    open(io_.get_executor());
  }
  ~LocalPlaceTest() override {
    close();
    set_log_level(LogLevel::Info);
  }

  void open(const asio::any_io_executor& blocking) {
    LocalPlaceOptions options{.instance_id = "0a1b2c3d-0000-4000-8000-000000000000",
                              .state_root = temp_directory_.path(),
                              .guest_program = temp_directory_.path() / "agbox-guest",
                              .output_root = temp_directory_.path() / "execs",
                              .devices = temp_directory_.path()};
    options.guest_limits.guest_uid = ::geteuid();
    place_ =
        LocalPlace::create(io_.get_executor(), blocking, isolation_, std::move(options), Logger())
            .value();
    sandbox_ = open_sandbox("box-1");
  }
  std::unique_ptr<SandboxPlace> open_sandbox(const std::string& sandbox_id) {
    return place_->open(sandbox_id, *this);
  }
  std::unique_ptr<SandboxPlace> open_companion(const std::string& name) {
    return place_->open_companion("box-1", name, *this);
  }
  void close() {
    if (!place_) return;
    run(place_->disconnect());
    sandbox_.reset();
    place_.reset();
  }

  // Runs until the story is told.
  void run(asio::awaitable<void> story) {
    bool is_notified = false;
    asio::co_spawn(io_, std::move(story), [&](const std::exception_ptr& failure) {
      is_notified = true;
      if (failure) std::rethrow_exception(failure);
    });
    io_.restart();
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!is_notified && std::chrono::steady_clock::now() < end) io_.run_one_for(100ms);
    ASSERT_TRUE(is_notified) << "the story hangs";
  }
  template <class T>
  T result_of(asio::awaitable<T> call) {
    std::optional<T> result;
    run([&]() -> asio::awaitable<void> { result = co_await std::move(call); }());
    return std::move(*result);
  }

  // Runs next to the test; the result is set when it ends.
  template <class T>
  void spawn(asio::awaitable<T> call, std::optional<T>& result) {
    asio::co_spawn(io_, std::move(call), [&result](const std::exception_ptr& failure, T value) {
      if (failure) std::rethrow_exception(failure);
      result = std::move(value);
    });
    poll();
  }
  void poll() {
    io_.restart();
    io_.poll();
  }

  SandboxFacts facts(const std::string& sandbox_id = "box-1") const {
    SandboxFacts made{
        .sandbox_id = sandbox_id, .spec = {}, .created_with = {}, .subnet = {}, .containers = {}};
    made.created_with.set_exec_output_root((temp_directory_.path() / "execs").string());
    made.created_with.set_exec_output_template("{sandbox_id}/{exec_id}");
    place_->describe(made.created_with);
    return made;
  }
  // The directory that is mounted for the guest's socket.
  static fs::path link_directory(const Attachments& attachments) {
    for (const Attachment& attachment : attachments) {
      if (attachment.target == guestwire::kLinkDirectoryInside) return attachment.source;
    }
    return {};
  }
  // A guest that is connected and was told to go.
  void settle_in(SandboxFacts& facts) {
    const auto prepared = result_of(sandbox_->prepare(facts));
    ASSERT_TRUE(prepared) << prepared.error().message();
    const std::string secret = sandbox_->new_secret();
    facts.containers[""].set_secret(secret);
    ASSERT_TRUE(result_of(sandbox_->reconnect(facts)));
    run([&]() -> asio::awaitable<void> {
      EXPECT_TRUE(
          co_await guest_.arrive(link_directory(*prepared), guest::v1::PHASE_PASSED, secret));
      EXPECT_TRUE(co_await sandbox_->hello(std::chrono::steady_clock::now() + 5s));
    }());
  }
  bool comes_back(const SandboxFacts& facts, const fs::path& directory) {
    EXPECT_TRUE(result_of(sandbox_->reconnect(facts)));
    bool is_back = false;
    run([&]() -> asio::awaitable<void> {
      is_back = co_await guest_.arrive(directory, guest::v1::PHASE_PASSED,
                                       facts.containers.at("").secret());
    }());
    return is_back;
  }
  static store::v1::Exec record_of(const OutputPaths& paths) {
    store::v1::Exec record;
    record.set_output_root(paths.root);
    record.set_stdout_log_path(paths.stdout_path);
    record.set_stderr_log_path(paths.stderr_path);
    return record;
  }
  static std::string content_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static bool is_open(const std::string& path) {
    std::error_code closed;  // of the iteration itself
    return std::ranges::any_of(fs::directory_iterator("/proc/self/fd"), [&](const auto& fd) {
      return fs::read_symlink(fd, closed) == path;
    });
  }

  asio::io_context io_{1};
  TempDirectory temp_directory_;
  FakeIsolation isolation_;
  ScriptedGuest guest_;
  std::unique_ptr<LocalPlace> place_;
  std::unique_ptr<SandboxPlace> sandbox_;
  int connected_ = 0;

 private:
  void guest_connected(const GuestHello&) override { ++connected_; }
  void guest_lost(const std::string&) override {}
  void exec_ended(const ExecEnd&) override {}
  void exec_not_sent(const std::string&, const std::string&) override {}
  void exec_truncated(const std::string&) override {}
};

// The secret alone does not say who may take the places of connections that are not authenticated.
TEST_F(LocalPlaceTest, AGuestThatIsAliveComesBackAndNoOtherProcessDoes) {
  SandboxFacts facts = this->facts();
  const auto prepared = result_of(sandbox_->prepare(facts));
  ASSERT_TRUE(prepared);
  store::v1::Container& primary = facts.containers[""];
  primary.set_secret(sandbox_->new_secret());
  const fs::path directory = link_directory(*prepared);
  EXPECT_TRUE(comes_back(facts, directory)) << "its process is not known";
  primary.set_guest_pid(::getpid());
  primary.set_guest_start_ticks(guestlink::start_time_of(::getpid()));
  EXPECT_TRUE(comes_back(facts, directory)) << "its process is this one";
  primary.set_guest_pid(::getppid());
  primary.set_guest_start_ticks(guestlink::start_time_of(::getppid()));
  EXPECT_FALSE(comes_back(facts, directory)) << "its process is alive and another one";
  primary.set_guest_start_ticks(primary.guest_start_ticks() + 1);
  EXPECT_TRUE(comes_back(facts, directory)) << "its process is not alive, and excludes no other";
}

TEST_F(LocalPlaceTest, TheContainerSeesTheProgramItsLinkAndItsOutput) {
  SandboxFacts made = facts();
  const auto prepared = result_of(sandbox_->prepare(made));
  ASSERT_TRUE(prepared) << prepared.error().message();
  ASSERT_EQ(prepared->size(), 3U);
  EXPECT_EQ((*prepared)[0].source, made.created_with.guest_program());
  EXPECT_EQ((*prepared)[0].target, "/.agbox-guest");
  EXPECT_EQ((*prepared)[1].target, "/.agbox-link");
  EXPECT_EQ((*prepared)[2].source, temp_directory_.path() / "execs" / "box-1");
  EXPECT_EQ((*prepared)[2].target, "/var/log/agents-sandbox/");
  for (const Attachment& attachment : *prepared) {
    EXPECT_TRUE(fs::exists(attachment.source)) << attachment.source;
    EXPECT_TRUE(attachment.read_only);
  }
  EXPECT_TRUE(result_of(sandbox_->remove(made)));
  EXPECT_FALSE(fs::exists(link_directory(*prepared)));
}

TEST_F(LocalPlaceTest, WithoutALinkEveryCallIsRefused) {
  EXPECT_FALSE(sandbox_->is_connected());
  EXPECT_FALSE(sandbox_->takes_execs());
  EXPECT_FALSE(sandbox_->start_exec(
      {.exec_id = "exec-1", .command = {"true"}, .working_directory = "/", .environment = {}}));
  EXPECT_FALSE(sandbox_->cancel_exec("exec-1", 1s));
  EXPECT_FALSE(sandbox_->forget_exec("exec-1"));
  EXPECT_FALSE(sandbox_->expect(facts(), 0));
  EXPECT_THAT(sandbox_->go({}).error().message(),
              HasSubstr("sandbox box-1 has no link to a guest"));
  sandbox_->container_may_have_ended();
}

TEST_F(LocalPlaceTest, ALinkThatRestsKeepsItsDirectoryForTheNextStart) {
  SandboxFacts made = facts();
  const fs::path directory = link_directory(result_of(sandbox_->prepare(made)).value());
  ASSERT_TRUE(sandbox_->expect(made, 0));
  sandbox_->rest();
  sandbox_->rest();
  EXPECT_FALSE(sandbox_->is_connected());
  EXPECT_FALSE(sandbox_->expect(made, 0));
  EXPECT_TRUE(fs::exists(directory));
  ASSERT_TRUE(result_of(sandbox_->adopt(made)));
  ASSERT_TRUE(sandbox_->expect(made, 0));
  run([&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await guest_.arrive(directory));
    EXPECT_TRUE(co_await sandbox_->hello(std::chrono::steady_clock::now() + 5s));
  }());
  EXPECT_EQ(connected_, 1);
}

TEST_F(LocalPlaceTest, ACompanionSeesItsGuestAndNoOutput) {
  SandboxFacts made = facts();
  const fs::path own = link_directory(result_of(sandbox_->prepare(made)).value());
  const auto companion = open_companion("db");
  SandboxFacts of_companion = facts();
  const auto prepared = result_of(companion->prepare(of_companion));
  ASSERT_TRUE(prepared.has_value());
  ASSERT_EQ(prepared->size(), 2U);
  EXPECT_EQ((*prepared)[0].target, "/.agbox-guest");
  EXPECT_EQ((*prepared)[1].target, "/.agbox-link");
  const fs::path directory = link_directory(*prepared);
  EXPECT_NE(directory, own);
  companion->rest();
  EXPECT_TRUE(result_of(companion->adopt(of_companion)));
  // With that of its sandbox.
  EXPECT_TRUE(result_of(sandbox_->remove(made)));
  EXPECT_FALSE(fs::exists(directory));
  EXPECT_FALSE(fs::exists(directory.parent_path()));
}

TEST_F(LocalPlaceTest, NextToOtherProcessesOnlyThatOfTheEngineConnects) {
  const auto companion = open_companion("db");
  SandboxFacts made = facts();
  const fs::path directory = link_directory(result_of(companion->prepare(made)).value());
  ASSERT_TRUE(companion->expect(made, ::getpid() + 1));
  run([&]() -> asio::awaitable<void> { EXPECT_FALSE(co_await guest_.arrive(directory)); }());
  ASSERT_TRUE(companion->expect(made, ::getpid()));
  run([&]() -> asio::awaitable<void> { EXPECT_TRUE(co_await guest_.arrive(directory)); }());
  companion->rest();
}

TEST_F(LocalPlaceTest, TheRuntimeUserJoinsTheGroupsOfTheGpus) {
  v1::CreateSpec spec;
  store::v1::CreatedWith created_with;
  created_with.add_gpu_gids(7);
  // The only device is root's, so that no group is added, and none is left of an earlier attempt.
  fs::create_symlink("/dev/null", temp_directory_.path() / "nvidia0");
  spec.set_gpus("all");
  ASSERT_TRUE(result_of(place_->resolve_mounts(spec, created_with, "")).has_value());
  EXPECT_THAT(created_with.gpu_gids(), testing::IsEmpty());
  fs::create_symlink("missing", temp_directory_.path() / "nvidia1");
  const auto refused = result_of(place_->resolve_mounts(spec, created_with, ""));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("nvidia1"));

  SandboxFacts made = facts();
  made.created_with.add_gpu_gids(44);
  const auto prepared = result_of(sandbox_->prepare(made));
  ASSERT_TRUE(prepared.has_value());
  ASSERT_TRUE(sandbox_->expect(made, 0).has_value());
  run([&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await guest_.connect(link_directory(*prepared)));
    const auto welcome = co_await guest_.shake_hands(guest::v1::PHASE_FRESH);
    EXPECT_TRUE(welcome && welcome->has_welcome());
    if (welcome) EXPECT_THAT(welcome->welcome().supplemental_gids(), ElementsAre(44));
  }());
}

TEST_F(LocalPlaceTest, OnlyTheDirectoryThatWasPreparedIsAdopted) {
  SandboxFacts made = facts();
  EXPECT_EQ(result_of(sandbox_->adopt(made)).error().kind(), GuestErrorKind::Unavailable)
      << "nothing was ever made, not even the root";
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  store::v1::Container& primary = made.containers[""];
  primary.set_guest_folder_inode(primary.guest_folder_inode() + 1);
  EXPECT_EQ(result_of(sandbox_->adopt(made)).error().kind(), GuestErrorKind::Refused);
}

TEST_F(LocalPlaceTest, WhatIsBeingRemovedIsNotMadeAgainMeanwhile) {
  asio::io_context blocking;
  const auto keep_running = asio::make_work_guard(blocking);
  SandboxFacts gone = facts();
  SandboxFacts other = facts("other-1");
  const fs::path left_over = link_directory(result_of(sandbox_->prepare(gone)).value());
  close();
  open(blocking.get_executor());
  std::optional<Result<std::vector<std::string>>> removed;
  spawn(place_->remove_unclaimed([] { return std::set<std::string>{}; }), removed);
  blocking.poll();  // they are listed
  poll();           // and none is claimed
  EXPECT_EQ(result_of(sandbox_->prepare(gone)).error().kind(), GuestErrorKind::Unavailable);
  auto other_sandbox = open_sandbox("other-1");
  std::optional<GuestResult<Attachments>> unaffected;
  spawn(other_sandbox->prepare(other), unaffected);
  EXPECT_FALSE(unaffected) << "it only waits for the directory of its output";
  EXPECT_FALSE(removed);
  blocking.poll();
  poll();
  ASSERT_TRUE(removed && removed->has_value());
  EXPECT_THAT(**removed, ElementsAre(left_over.string()));
  EXPECT_FALSE(fs::exists(left_over));
  ASSERT_TRUE(unaffected && unaffected->has_value());
  EXPECT_TRUE(fs::exists(link_directory(**unaffected)));
  std::optional<GuestResult<Attachments>> again;
  spawn(sandbox_->prepare(gone), again);
  blocking.poll();
  poll();
  ASSERT_TRUE(again);
  ASSERT_TRUE(again->has_value()) << again->error().message();
  EXPECT_TRUE(fs::exists(left_over));
  other_sandbox.reset();
  close();
}

// Two threads block at once, for tsan.
TEST_F(LocalPlaceTest, CallsThatBlockMayRunSideBySide) {
  close();
  asio::thread_pool blocking(2);
  open(blocking.get_executor());
  run([&]() -> asio::awaitable<void> {
    using boost::asio::experimental::awaitable_operators::operator&&;
    SandboxFacts made = facts();
    SandboxFacts others = facts("other-1");
    const auto other = open_sandbox("other-1");
    for (int round = 0; round < 20; ++round) {
      const auto [first, second, before] =
          co_await (sandbox_->prepare(made) && other->prepare(others) && place_->list_outputs());
      EXPECT_TRUE(first && second && before);
      const auto [prepared, removed, unclaimed, listed] =
          co_await (sandbox_->prepare(made) && other->remove(others) &&
                    place_->remove_unclaimed([] { return std::set<std::string>{"box-1"}; }) &&
                    place_->list_outputs());
      EXPECT_TRUE(prepared && removed && unclaimed && listed);
      if (!prepared) continue;
      EXPECT_TRUE(fs::exists(link_directory(*prepared)));
      EXPECT_FALSE(fs::exists(LinkDirectory::path_of(made.link_root(), "other-1")));
    }
  }());
  close();
}

TEST_F(LocalPlaceTest, WhatIsClaimedStays) {
  SandboxFacts made = facts();
  const fs::path directory = link_directory(result_of(sandbox_->prepare(made)).value());
  const auto removed =
      result_of(place_->remove_unclaimed([] { return std::set<std::string>{"box-1"}; }));
  EXPECT_THAT(removed.value(), testing::IsEmpty());
  EXPECT_TRUE(fs::exists(directory));
}

TEST_F(LocalPlaceTest, AnExecIsStartedWithTheFilesThatWereCreatedForIt) {
  SandboxFacts made = facts();
  settle_in(made);
  const auto paths = result_of(sandbox_->create_output(made.created_with, "exec-1"));
  ASSERT_TRUE(paths) << paths.error().message();
  ASSERT_TRUE(result_of(sandbox_->open_output("exec-1", record_of(*paths))));
  ASSERT_TRUE(sandbox_->start_exec(
      {.exec_id = "exec-1", .command = {"true"}, .working_directory = "/", .environment = {}}));
  EXPECT_FALSE(sandbox_->start_exec(
      {.exec_id = "exec-2", .command = {"true"}, .working_directory = "/", .environment = {}}))
      << "no output was opened for it";
  run([&]() -> asio::awaitable<void> {
    const auto told = co_await guest_.receive();
    EXPECT_TRUE(told && told->start_exec().exec_id() == "exec-1");
  }());
  ASSERT_EQ(guest_.descriptors.size(), 2U);
  EXPECT_EQ(::write(guest_.descriptors[0].get(), "out", 3), 3);
  EXPECT_EQ(::write(guest_.descriptors[1].get(), "err", 3), 3);
  EXPECT_EQ(content_of(paths->stdout_path), "out");
  EXPECT_EQ(content_of(paths->stderr_path), "err");
  guest_.descriptors.clear();
  EXPECT_FALSE(is_open(paths->stdout_path));
}

TEST_F(LocalPlaceTest, OutputOfAnExecThatWasRefusedIsRemoved) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  const auto paths = result_of(sandbox_->create_output(made.created_with, "exec-1")).value();
  EXPECT_TRUE(fs::exists(paths.stdout_path));
  run(sandbox_->discard_output("exec-1"));
  EXPECT_FALSE(fs::exists(paths.stdout_path));
  EXPECT_FALSE(fs::exists(paths.stderr_path));
}

// Its ID is refused by the store, because another exec had it.
TEST_F(LocalPlaceTest, OutputOfAnEarlierExecSurvivesOneThatWasRefused) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  const auto paths = result_of(sandbox_->create_output(made.created_with, "exec-1")).value();
  sandbox_->close_output("exec-1");
  std::ofstream(paths.stdout_path) << "earlier";
  ASSERT_TRUE(result_of(sandbox_->create_output(made.created_with, "exec-1")));
  EXPECT_EQ(content_of(paths.stdout_path), "earlier");
  run(sandbox_->discard_output("exec-1"));
  EXPECT_EQ(content_of(paths.stdout_path), "earlier");
}

TEST_F(LocalPlaceTest, AnAcceptedExecReplacesWhatACreateLeftAndKeepsItsOwn) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  const auto paths = result_of(sandbox_->create_output(made.created_with, "exec-1")).value();
  sandbox_->close_output("exec-1");
  std::ofstream(paths.stdout_path) << "left by a create that came to nothing";
  ASSERT_TRUE(result_of(sandbox_->create_output(made.created_with, "exec-1")));
  ASSERT_TRUE(result_of(sandbox_->open_output("exec-1", record_of(paths))));
  EXPECT_EQ(content_of(paths.stdout_path), "");
  sandbox_->close_output("exec-1");
}

TEST_F(LocalPlaceTest, AnExecThatIsNotStartedIsExplainedOnce) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  const auto paths = result_of(sandbox_->create_output(made.created_with, "exec-1")).value();
  sandbox_->close_output("exec-1");
  for (int times = 0; times < 2; ++times) {
    ASSERT_TRUE(result_of(sandbox_->explain_output(record_of(paths), "no guest")));
    EXPECT_EQ(content_of(paths.stderr_path), "no guest\n");
  }
  ASSERT_TRUE(result_of(sandbox_->explain_output(record_of(paths), "still no guest")));
  ASSERT_TRUE(result_of(sandbox_->explain_output(record_of(paths), "no guest")));
  EXPECT_EQ(content_of(paths.stderr_path), "no guest\nstill no guest\nno guest\n");
  // One that is started after all has never written anything itself.
  ASSERT_TRUE(result_of(sandbox_->open_output("exec-1", record_of(paths))));
  EXPECT_EQ(content_of(paths.stderr_path), "");
  EXPECT_EQ(content_of(paths.stdout_path), "");
}

TEST_F(LocalPlaceTest, AFileThatIsNotALogIsNotExplained) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  const auto paths = result_of(sandbox_->create_output(made.created_with, "exec-1")).value();
  const fs::path other = fs::path(paths.root) / "other";
  std::ofstream(other) << "of another";
  fs::remove(paths.stderr_path);
  fs::create_symlink(other, paths.stderr_path);
  EXPECT_FALSE(result_of(sandbox_->explain_output(record_of(paths), "no guest")));
  EXPECT_EQ(content_of(other), "of another");
}

TEST_F(LocalPlaceTest, OutputIsListedAndRemovedBySandbox) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  ASSERT_TRUE(result_of(sandbox_->create_output(made.created_with, "exec-1")));
  EXPECT_THAT(result_of(place_->list_outputs()).value(), ElementsAre("box-1"));
  EXPECT_TRUE(result_of(place_->remove_output("box-1", made.created_with)));
  EXPECT_TRUE(result_of(place_->remove_output("box-1", made.created_with)));
  EXPECT_THAT(result_of(place_->list_outputs()).value(), testing::IsEmpty());
  EXPECT_TRUE(result_of(place_->remove_output("box-1", {}))) << "where it is, is unknown";
}

TEST_F(LocalPlaceTest, AVerificationWithoutTheGuestsReportIsUnknown) {
  SandboxFacts made = facts();
  ASSERT_TRUE(result_of(sandbox_->prepare(made)));
  const Verification silent = result_of(sandbox_->verify(VerifyFrom::Inside));
  EXPECT_FALSE(silent.outcome);
  EXPECT_TRUE(silent.is_unknown);
  isolation_.verification_problem = "the rules are gone";
  const Verification broken = result_of(sandbox_->verify(VerifyFrom::Inside));
  EXPECT_EQ(broken.outcome.error().message(), "the rules are gone");
  EXPECT_FALSE(broken.is_unknown);
}

}  // namespace
}  // namespace agbox
