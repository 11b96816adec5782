// SPDX-License-Identifier: Apache-2.0
// What is Docker's of companions, on FakeDocker. What every engine promises of them is in the
// contract test.
#include "engine/docker/workload/companions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "engine/docker/api/output_tail.h"
#include "engine/docker/docker_engine.h"
#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using fake::json::value_to;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

constexpr const char* kContainerName = "agbox-cc-s1-db";

class NoListener final : public EngineListener {
 public:
  void reachable(const ReachableEngine&) override {}
  void unreachable(std::string) override {}
  void reconcile_due() override { is_watching = true; }
  void container_may_have_ended(const std::string& sandbox_id) override {
    reports.push_back("primary of " + sandbox_id);
  }
  void companion_may_have_changed(const std::string& sandbox_id, const std::string& name) override {
    reports.push_back(name + " of " + sandbox_id);
  }
  void container_changed(const std::string&) override { ++changes; }
  void object_created(const std::string&) override {}
  void sweep_due() override { ++sweeps; }

  bool is_watching = false;
  int sweeps = 0;
  int changes = 0;
  std::vector<std::string> reports;
};

class NoClaims final : public SandboxClaims {
 public:
  SandboxClaim claim_of(const std::string&) const override { return claim; }
  std::vector<std::string> sandbox_ids() const override { return {}; }

  SandboxClaim claim;
};

class CompanionsTest : public testing::Test {
 protected:
  CompanionsTest() {
    docker_.engine().add_image("postgres");
    db_.sandbox_id = "s1";
    db_.spec.set_name("db");
    db_.spec.set_image("postgres");
    db_.sandbox_labels = {{"team", "a"}};
    db_.dns = {"192.0.2.53"};
    db_.engine_id = docker_.engine().id;
    sandbox_.sandbox_id = "s1";
    sandbox_.spec.create_spec.set_image("postgres");
    sandbox_.created_with.set_engine_id(docker_.engine().id);
  }
  ~CompanionsTest() override { loop_.run(engine_.shut_down()); }

  template <class T>
  EngineResult<T> run(EngineAwaitable<T> call) {
    return loop_.run(std::move(call));
  }
  template <class T>
  void must(EngineAwaitable<T> call) {
    const auto done = run(std::move(call));
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  void check(std::vector<std::string> test) {
    db_.spec.mutable_healthcheck()->mutable_test()->Assign(test.begin(), test.end());
  }
  void start() {
    must(engine_.ensure_workload(sandbox_, {}));
    must(engine_.ensure_companion(db_, {}));
    must(engine_.start_companion(db_));
    sandbox_.containers["db"] = db_.container;
  }
  fake::Container& container() {
    return *docker_.engine().find_container(db_.container.container_id());
  }
  ProbeOutcome probe() {
    const auto outcome = run(engine_.probe_companion(db_, 30s));
    EXPECT_TRUE(outcome.has_value()) << outcome.error().message();
    return outcome.value_or(ProbeOutcome{.exit_code = -1});
  }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  DockerEngine engine_{loop_.executor(),
                       loop_.executor(),
                       {.socket_path = docker_.socket_path(),
                        .environment = {},
                        .instance_id = "i1",
                        .address_pool = parse_ipv4_network("10.99.0.0/16").value(),
                        .host = {.networks_in_use = [](auto) { return std::vector<Ipv4Network>(); },
                                 .has_link = [](const auto&) { return false; },
                                 .find_links = [](auto) { return std::vector<std::string>(); },
                                 .remove_link = [](const auto&) { return Result<>(); }},
                        .seccomp_profile = "{}"},
                       Logger()};
  CompanionFacts db_;
  SandboxFacts sandbox_;
};

// --- creation ---

TEST_F(CompanionsTest, IsKnownOnTheNetworkByItsNameAndHasAnInit) {
  start();
  const fake::json::object& spec = container().spec;
  EXPECT_EQ(container().name, kContainerName);
  EXPECT_EQ(spec.at("HostConfig").at("Init"), true);
  EXPECT_EQ(spec.at("HostConfig").at("NetworkMode"), "agbox-net-s1");
  EXPECT_THAT(
      value_to<std::vector<std::string>>(
          spec.at("NetworkingConfig").at("EndpointsConfig").at("agbox-net-s1").at("Aliases")),
      ElementsAre("db"));
  EXPECT_EQ(container().labels, companion_labels("i1", "s1", "db", {{"team", "a"}}));
}

TEST_F(CompanionsTest, AForeignContainerOfItsNameIsNamedAndLeftAlone) {
  EngineClient another_client(loop_.executor(), {.socket_path = docker_.socket_path()});
  ContainerSpec theirs{.name = kContainerName, .image = "postgres"};
  theirs.labels = companion_labels("another instance", "s1", "db", {});
  const auto id = run(another_client.create_container(theirs));
  const auto refused = run(engine_.ensure_companion(db_, {}));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Conflict);
  EXPECT_THAT(
      refused.error().message(),
      AllOf(HasSubstr(kContainerName), HasSubstr("exists already"), HasSubstr(id->substr(0, 12))));
  EXPECT_THAT(docker_.container_names(), ElementsAre(kContainerName));
  EXPECT_THAT(db_.container.container_id(), IsEmpty());
}

TEST_F(CompanionsTest, AnotherOfOursWithItsNameGivesItAnother) {
  CompanionFacts other = db_;
  other.sandbox_id = "s1-a";
  CompanionFacts met = db_;
  met.spec.set_name("a-db");
  must(engine_.ensure_companion(other, {}));
  must(engine_.ensure_companion(met, {}));
  EXPECT_EQ(docker_.engine().find_container(other.container.container_id())->name,
            "agbox-cc-s1-a-db");
  EXPECT_THAT(docker_.engine().find_container(met.container.container_id())->name,
              testing::MatchesRegex("agbox-cc-s1-a-db-[0-9a-f]{8}"));
}

TEST_F(CompanionsTest, ALostAnswerOfACreateIsMadeGoodByAskingAgain) {
  docker_.lose_answer("POST /containers/create", 1);
  EXPECT_TRUE(run(engine_.ensure_companion(db_, {})).error().is_open());
  EXPECT_THAT(db_.container.container_id(), IsEmpty());
  must(engine_.ensure_companion(db_, {}));
  EXPECT_THAT(docker_.container_names(), ElementsAre(kContainerName));
}

TEST_F(CompanionsTest, ACreateThatIsCancelledIsNotLeftToTheEngine) {
  docker_.hold("POST /containers/create");
  auto call = loop_.spawn(engine_.ensure_companion(db_, {}));
  loop_.run_until([&] { return docker_.held("POST /containers/create") == 1; });
  call.cancel();
  loop_.run_until_idle();
  EXPECT_FALSE(call.is_done());
  docker_.release("POST /containers/create");
  loop_.run_until([&] { return call.is_done(); });
  EXPECT_EQ(docker_.abandoned("POST /containers/create"), 0);
  EXPECT_THAT(docker_.container_names(), ElementsAre(kContainerName));
}

TEST_F(CompanionsTest, ItsImageIsPulledOnceForAllWhoWait) {
  docker_.engine().registry["docker.io/library/redis:latest"] = {
      .lines = {R"({"status":"Pull complete","progressDetail":{},"id":"0123456789ab"})"}};
  docker_.hold("PULL docker.io/library/redis:latest 0");
  CompanionFacts first = db_;
  first.spec.set_image("redis");
  CompanionFacts second = first;
  second.sandbox_id = "s2";
  auto one = loop_.spawn(engine_.ensure_companion_image(first, [](const std::string&) {}));
  auto two = loop_.spawn(engine_.ensure_companion_image(second, [](const std::string&) {}));
  loop_.run_until([&] { return docker_.held("PULL *") == 1; });
  loop_.run_until_idle();
  docker_.release("PULL docker.io/library/redis:latest 0");
  loop_.run_until([&] { return one.is_done() && two.is_done(); });
  EXPECT_TRUE(one.result().has_value());
  EXPECT_TRUE(two.result().has_value());
  EXPECT_EQ(docker_.calls("POST /images/create"), 1);
  first.spec.set_image("no-such-image");
  EXPECT_TRUE(
      run(engine_.ensure_companion_image(first, [](const std::string&) {})).error().is_definite());
}

TEST_F(CompanionsTest, ARefusalNamesTheCompanionAndTheField) {
  db_.spec.set_disk_limit("1g");
  docker_.reply("POST /containers/create", 500,
                R"({"message":"--storage-opt is supported only for overlay over xfs"})");
  EXPECT_THAT(run(engine_.ensure_companion(db_, {})).error().message(),
              StartsWith("companion container \"db\": disk_limit not supported by Docker runtime"));
}

TEST_F(CompanionsTest, AnEngineWithoutItsInitIsNamed) {
  must(engine_.ensure_workload(sandbox_, {}));
  must(engine_.ensure_companion(db_, {}));
  docker_.reply("POST /containers/*/start", 400,
                R"({"message":"exec: \"docker-init\": executable file not found in $PATH"})");
  const auto refused = run(engine_.start_companion(db_));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Refused);
  EXPECT_THAT(refused.error().message(),
              AllOf(StartsWith("companion container \"db\": "), HasSubstr("no init"),
                    HasSubstr("Install docker-init")));
}

// --- start and stop ---

TEST_F(CompanionsTest, IsNotStartedIfItsAccountFilesWouldBlockTheEngine) {
  must(engine_.ensure_workload(sandbox_, {}));
  must(engine_.ensure_companion(db_, {}));
  container().files["/etc/passwd"].mode = fake::kFifoMode;
  const auto refused = run(engine_.start_companion(db_));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Unsafe);
  EXPECT_EQ(docker_.calls("POST /containers/*/start"), 0);
  container().files["/etc/passwd"] = {};
  must(engine_.start_companion(db_));
  container().files["/etc/passwd"].mode = fake::kFifoMode;
  must(engine_.start_companion(db_));  // it runs: nothing is opened
}

TEST_F(CompanionsTest, WhatIsNotItIsNeverStarted) {
  must(engine_.ensure_workload(sandbox_, {}));
  db_.container.set_container_id(sandbox_.primary_id());
  EXPECT_EQ(run(engine_.start_companion(db_)).error().kind(), EngineErrorKind::Conflict);
  db_.container.set_container_id("0123456789ab");
  EXPECT_EQ(run(engine_.start_companion(db_)).error().kind(), EngineErrorKind::NotFound);
  EXPECT_EQ(docker_.calls("POST /containers/*/start"), 0);
}

TEST_F(CompanionsTest, AllContainersAreStoppedAtTheSameTimeEvenIfOneRefuses) {
  start();
  must(engine_.start(sandbox_));
  docker_.hold("POST /containers/*/stop");
  docker_.reply("POST /containers/agbox-primary-s1/stop", 500, R"({"message":"no"})");
  auto stop = loop_.spawn(engine_.stop(sandbox_));
  loop_.run_until([&] { return docker_.held("POST /containers/*/stop") == 1; });
  loop_.run_until_idle();
  EXPECT_FALSE(stop.is_done()) << "the others are tried first";
  docker_.release("POST /containers/*/stop");
  loop_.run_until([&] { return stop.is_done(); });
  ASSERT_FALSE(stop.result().has_value());
  EXPECT_THAT(stop.result().error().message(), HasSubstr("no"));
  EXPECT_EQ(container().status, "exited");
  EXPECT_EQ(container().stop_timeout, "5");

  docker_.clear_faults();
  must(engine_.start_companion(db_));
  docker_.hold("POST /containers/*/stop");
  stop = loop_.spawn(engine_.stop(sandbox_));
  loop_.run_until([&] { return docker_.held("POST /containers/*/stop") == 2; });
  docker_.release("POST /containers/*/stop");
  loop_.run_until([&] { return stop.is_done(); });
  EXPECT_TRUE(stop.result().has_value());
}

TEST_F(CompanionsTest, WhatIsPausedIsKilledAndDoesNotRunBefore) {
  start();
  sandbox_.containers[""].set_paused(store::v1::Container::PAUSED_YES);
  must(engine_.stop(sandbox_));
  EXPECT_EQ(docker_.calls("POST /containers/*/stop"), 0);
  EXPECT_EQ(container().status, "exited");
  must(engine_.start_companion(db_));
  db_.container.set_paused(store::v1::Container::PAUSED_YES);
  must(engine_.stop_companion(db_));
  EXPECT_EQ(docker_.calls("POST /containers/*/stop"), 0);
  EXPECT_EQ(container().status, "exited");
}

TEST_F(CompanionsTest, APauseThatIsRefusedWhileItRunsIsAFailure) {
  start();
  must(engine_.start(sandbox_));
  docker_.reply("POST /containers/agbox-cc-s1-db/pause", 409, R"({"message":"cannot freeze"})");
  const auto refused = run(engine_.pause(sandbox_));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("cannot freeze"));
}

// --- what is seen ---

TEST_F(CompanionsTest, WhatCrashedWithTheEngineMayRunWithoutItsNetwork) {
  start();
  EXPECT_TRUE(run(engine_.inspect_companion(db_)).value().has_network);
  docker_.engine().cut_off(container());
  const CompanionSeen seen = run(engine_.inspect_companion(db_)).value();
  EXPECT_EQ(seen.state, CompanionSeen::State::Running);
  EXPECT_FALSE(seen.has_network);
}

TEST_F(CompanionsTest, WhatDoesNotCarryItsLabelsIsForeign) {
  start();
  container().labels = companion_labels("i1", "s1", "another", {});
  EXPECT_EQ(run(engine_.inspect_companion(db_)).value().state, CompanionSeen::State::Foreign);
  container().labels = companion_labels("i1", "s2", "db", {});
  EXPECT_EQ(run(engine_.inspect_companion(db_)).value().state, CompanionSeen::State::Foreign);
  container().labels = companion_labels("i2", "s1", "db", {});
  EXPECT_EQ(run(engine_.inspect_companion(db_)).value().state, CompanionSeen::State::Foreign);
}

TEST_F(CompanionsTest, TheImagesOwnCheckCounts) {
  docker_.engine().find_image("postgres")->config["Healthcheck"] =
      fake::json::object{{"Test", {"CMD", "pg_isready"}}};
  start();
  EXPECT_EQ(run(engine_.inspect_companion(db_)).value().health, CompanionSeen::Health::Starting);
  docker_.engine().set_health(container(), "unhealthy", "no \x1b[31mresponse\n");
  const CompanionSeen seen = run(engine_.inspect_companion(db_)).value();
  EXPECT_EQ(seen.health, CompanionSeen::Health::Unhealthy);
  EXPECT_EQ(seen.probe_output, "no \\x1b[31mresponse");
  docker_.engine().end_container(container(), 1);
  EXPECT_EQ(run(engine_.inspect_companion(db_)).value().health, CompanionSeen::Health::None);
}

TEST_F(CompanionsTest, EventsAreThoseOfItsOwnContainer) {
  NoListener listener;
  const NoClaims claims;
  auto watch = loop_.spawn(engine_.watch(listener, claims));
  loop_.run_until([&] { return listener.is_watching; });
  check({"CMD", "true"});
  start();
  must(engine_.start(sandbox_));
  loop_.run_until_idle();
  EXPECT_THAT(listener.reports, IsEmpty());
  EXPECT_EQ(listener.sweeps, 2) << "nothing claims these";
  docker_.engine().set_health(container(), "healthy");
  docker_.engine().end_container(container(), 137, true);
  docker_.engine().end_container(*docker_.engine().find_container("agbox-primary-s1"), 1);
  loop_.run_until([&] { return listener.reports.size() == 4; });
  EXPECT_THAT(listener.reports, ElementsAre("db of s1", "db of s1", "db of s1", "primary of s1"));
  watch.cancel();
  loop_.run_until([&] { return watch.is_done(); });
}

// --- health and output ---

TEST(ProbeCommand, IsWhatTheEngineRuns) {
  const auto of = [](std::vector<std::string> test, std::vector<std::string> shell = {}) {
    ContainerSeen container;
    container.health_test = std::move(test);
    container.shell = std::move(shell);
    return probe_command(container);
  };
  EXPECT_THAT(of({}), IsEmpty());
  EXPECT_THAT(of({"NONE"}), IsEmpty());
  EXPECT_THAT(of({"CMD"}), IsEmpty());
  EXPECT_THAT(of({"CMD", "a", "b c"}), ElementsAre("a", "b c"));
  EXPECT_THAT(of({"CMD-SHELL", "a | b"}), ElementsAre("/bin/sh", "-c", "a | b"));
  EXPECT_THAT(of({"CMD-SHELL", "a"}, {"/bin/bash", "-e", "-c"}),
              ElementsAre("/bin/bash", "-e", "-c", "a"));
  EXPECT_THAT(of({"of a later version", "a"}), IsEmpty());
}

TEST_F(CompanionsTest, AProbeRunsTheCommandOfTheCheck) {
  check({"CMD-SHELL", "pg_isready"});
  start();
  EXPECT_TRUE(probe().is_healthy());
  ASSERT_THAT(docker_.engine().execs, SizeIs(1));
  EXPECT_THAT(docker_.engine().execs.begin()->second.command,
              ElementsAre("/bin/sh", "-c", "pg_isready"));
}

TEST_F(CompanionsTest, WithoutACheckNothingIsRun) {
  check({"NONE"});
  start();
  EXPECT_TRUE(probe().is_healthy());
  EXPECT_THAT(docker_.engine().execs, IsEmpty());
}

TEST_F(CompanionsTest, OutputOfAnyBytesAndAnyLengthIsBoundedAndPrintable) {
  check({"CMD", "x"});
  start();
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += static_cast<char>(i * 7);
  container().exec_answer = {.exit_code = 1, .output = bytes, .errors = "\xff\xfe the end \n"};
  const ProbeOutcome outcome = probe();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.output, testing::EndsWith("\xEF\xBF\xBD\xEF\xBF\xBD the end"));
  EXPECT_LE(outcome.output.size(), kLongestShownOutput);
  container().log = {{.text = bytes}};
  EXPECT_LE(run(engine_.companion_output(db_)).value().size(), kLongestShownOutput);
}

TEST_F(CompanionsTest, ACheckThatPrintsWithoutEndIsNotReadToItsEnd) {
  check({"CMD", "x"});
  start();
  container().exec_answer = {.exit_code = 0, .output = std::string(3'000'000, 'y')};
  const auto outcome = run(engine_.probe_companion(db_, 30s));
  ASSERT_FALSE(outcome.has_value());
  EXPECT_EQ(outcome.error().kind(), EngineErrorKind::Refused);
  EXPECT_THAT(outcome.error().message(), HasSubstr("more than 1 MiB"));
}

TEST_F(CompanionsTest, AnExitCodeMayComeAMomentAfterTheOutput) {
  check({"CMD", "x"});
  start();
  container().exec_answer = {.exit_code = 5};
  docker_.reply("GET /exec/*/json", 200, R"({"ID":"a","Running":true,"ExitCode":null})", 3);
  EXPECT_EQ(probe().exit_code, 5);
  EXPECT_EQ(docker_.calls("GET /exec/*/json"), 4);
}

TEST_F(CompanionsTest, ACheckThatDoesNotEndTimesOutAndTheEngineIsStillTheSame) {
  NoListener listener;
  const NoClaims claims;
  auto watch = loop_.spawn(engine_.watch(listener, claims));
  loop_.run_until([&] { return listener.is_watching; });
  check({"CMD", "x"});
  start();
  const int handshakes = docker_.calls("GET /info");
  container().exec_answer = {.output = "still waiting\n", .has_end = false};
  const auto late = run(engine_.probe_companion(db_, 100ms));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind(), EngineErrorKind::TimedOut);
  EXPECT_THAT(late.error().message(),
              AllOf(HasSubstr("companion container \"db\""), HasSubstr("within 0.1 s")));
  docker_.hang("POST /exec/*/start", 1);
  EXPECT_EQ(run(engine_.probe_companion(db_, 100ms)).error().kind(), EngineErrorKind::TimedOut);
  container().exec_answer = {};
  EXPECT_TRUE(probe().is_healthy());
  EXPECT_EQ(docker_.calls("GET /info"), handshakes);
  watch.cancel();
  loop_.run_until([&] { return watch.is_done(); });
}

TEST_F(CompanionsTest, ACheckThatCannotBeRunIsRefused) {
  check({"CMD", "x"});
  start();
  const auto kind = [this] {
    const auto refused = run(engine_.probe_companion(db_, 30s));
    return refused ? std::optional<EngineErrorKind>() : refused.error().kind();
  };
  container().is_paused = true;
  EXPECT_EQ(kind(), EngineErrorKind::Refused);
  container().is_paused = false;
  // It ends in between.
  docker_.engine().on_exec = [this](fake::Container& ended, const fake::Exec&) {
    docker_.engine().end_container(ended, 1);
  };
  EXPECT_EQ(kind(), std::nullopt);
  EXPECT_EQ(kind(), EngineErrorKind::Refused);
  must(engine_.remove(sandbox_));
  EXPECT_EQ(kind(), EngineErrorKind::Refused);
  docker_.stop_listening();
  EXPECT_EQ(kind(), EngineErrorKind::Unavailable);
}

TEST_F(CompanionsTest, AProbeThatIsCancelledEnds) {
  check({"CMD", "x"});
  start();
  container().exec_answer.has_end = false;
  for (int steps = 0; steps < 120; ++steps) {
    auto call = loop_.spawn(engine_.probe_companion(db_, 1h));
    loop_.run_steps(steps);
    call.cancel();
    loop_.run_until([&] { return call.is_done(); });
    ASSERT_FALSE(call.result().has_value());
    ASSERT_EQ(call.result().error().kind(), EngineErrorKind::Cancelled) << "after step " << steps;
  }
}

}  // namespace
}  // namespace agbox
