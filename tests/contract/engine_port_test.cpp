// SPDX-License-Identifier: Apache-2.0
// What control relies on of every engine, the same for all of them: one in memory, Docker's adapter
// on FakeDocker, and with AGBOX_ENGINE_SOCKET on a real engine (see engine_contract_test.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.h"
#include "engine/docker/docker_engine.h"
#include "guestwire/place.h"
#include "model/reasons.h"
#include "support/fake_docker/fake_docker.h"
#include "support/memory/memory_engine.h"
#include "support/test_loop.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using State = CompanionSeen::State;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string setting(const char* name, const std::string& otherwise = {}) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::vector<std::string> adapters() {
  std::vector<std::string> all{"Memory", "Fake"};
  if (!setting("AGBOX_ENGINE_SOCKET").empty()) all.emplace_back("Real");
  return all;
}

class Listener final : public EngineListener {
 public:
  void reachable(const ReachableEngine& engine) override { id = engine.id; }
  void unreachable(std::string why) override { problem = std::move(why); }
  void reconcile_due() override { ++reconciliations; }
  void container_may_have_ended(const std::string& sandbox_id) override {
    doubted.insert(sandbox_id);
  }
  void companion_may_have_changed(const std::string& sandbox_id, const std::string& name) override {
    doubted_companions.insert({sandbox_id, name});
  }
  void container_changed(const std::string& sandbox_id) override { changed.insert(sandbox_id); }
  void object_created(const std::string&) override {}
  void sweep_due() override {}

  std::string id;
  std::string problem;
  int reconciliations = 0;
  std::set<std::string> doubted;  // sandbox IDs
  std::set<std::string> changed;  // sandbox IDs
  std::set<std::pair<std::string, std::string>> doubted_companions;
};

class Claims final : public SandboxClaims {
 public:
  SandboxClaim claim_of(const std::string& sandbox_id) const override {
    const auto found = claims.find(sandbox_id);
    return found == claims.end() ? SandboxClaim{} : found->second;
  }
  std::vector<std::string> sandbox_ids() const override {
    std::vector<std::string> ids;
    for (const auto& [id, claim] : claims) ids.push_back(id);
    return ids;
  }

  std::map<std::string, SandboxClaim> claims;
};

class EnginePort : public testing::TestWithParam<std::string> {
 protected:
  EnginePort() {
    if (GetParam() == "Fake") {
      fake_ = std::make_unique<FakeDocker>(loop_.io());
      fake_->engine().add_image(image());
    }
    engine_ = make_engine();
    start_watch();
  }

  ~EnginePort() override {
    for (auto& [id, facts] : made_) EXPECT_TRUE(run(engine_->remove(facts)).has_value());
    stop_watch();
    loop_.run(engine_->shut_down());
  }

  // Another adapter of the same engine, which knows nothing of what the first one does.
  std::unique_ptr<Engine> make_engine() {
    if (GetParam() == "Memory") return std::make_unique<MemoryEngine>(machine_);
    return std::make_unique<DockerEngine>(loop_.executor(), loop_.executor(), docker_options(),
                                          Logger());
  }
  void start_watch() {
    listener_ = {};
    watch_ = loop_.spawn(engine_->watch(listener_, claims_));
    loop_.run_until([&] { return listener_.reconciliations > 0; });
  }
  void stop_watch() {
    watch_.cancel();
    loop_.run_until([&] { return watch_.is_done(); });
  }

  template <class T>
  EngineResult<T> run(EngineAwaitable<T> call) {
    return loop_.run(std::move(call));
  }
  template <class T>
  void must(EngineAwaitable<T> call) {
    const auto done = run(std::move(call));
    ASSERT_TRUE(done.has_value()) << done.error().message();
  }
  SandboxInspection look(const SandboxFacts& facts) {
    const auto seen = run(engine_->inspect(facts));
    EXPECT_TRUE(seen.has_value()) << seen.error().message();
    // None of the tests expects this one.
    return seen ? *seen : SandboxInspection{.seen = {.primary = PrimarySeen::Foreign}, .loss = {}};
  }

  // Of a sandbox that is removed at the end of the test.
  SandboxFacts& sandbox(const std::string& name) {
    const std::string id = name + "-" + instance_.substr(0, 8);
    SandboxFacts& facts = made_[name];
    facts.sandbox_id = id;
    facts.spec.create_spec.set_image(image());
    facts.created_with.set_engine_id(listener_.id);
    facts.created_with.add_dns("192.0.2.53");
    return facts;
  }
  // The guest itself, which waits for its daemon.
  Attachments attachments() {
    if (GetParam() != "Real") return {};
    return {{.source = setting("AGBOX_GUEST_PROGRAM"),
             .target = std::string(guestwire::kProgramInside)},
            {.source = temp_directory_.path().string(),
             .target = std::string(guestwire::kLinkDirectoryInside)}};
  }
  SandboxFacts& created(const std::string& name) {
    SandboxFacts& facts = sandbox(name);
    must(engine_->ensure_image(facts, [](const std::string&) {}));
    must(engine_->ensure_workload(facts, attachments()));
    return facts;
  }
  SandboxFacts& started(const std::string& name) {
    SandboxFacts& facts = created(name);
    must(engine_->start(facts));
    return facts;
  }

  // What a check of a companion's health does. The probes of a real engine run it.
  struct Check {
    int exit_code = 0;
    std::string output = "fine";
    bool has_end = true;
  };
  CompanionFacts companion(SandboxFacts& facts, const std::string& name,
                           const std::optional<Check>& check = std::nullopt) {
    CompanionFacts made;
    made.spec.set_name(name);
    made.spec.set_image(image());
    for (const char* part : {"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"}) {
      made.spec.add_command(part);
    }
    if (check) {
      v1::HealthcheckConfig& config = *made.spec.mutable_healthcheck();
      config.add_test("CMD-SHELL");
      config.add_test(check->has_end
                          ? "echo " + check->output + "; exit " + std::to_string(check->exit_code)
                          : "sleep 100");
      config.mutable_interval()->set_nanos(100'000'000);
      machine_.probes[name] = {.outcome = {.exit_code = check->exit_code, .output = check->output},
                               .has_end = check->has_end};
      if (fake_) {
        fake_->engine().probes[name] = {.exit_code = check->exit_code,
                                        .output = check->output + "\n",
                                        .has_end = check->has_end};
      }
    }
    made.sandbox_id = facts.sandbox_id;
    made.dns = {"192.0.2.53"};
    made.engine_id = listener_.id;
    must(engine_->ensure_companion_image(made, [](const std::string&) {}));
    must(engine_->ensure_companion(made, {}));
    facts.containers[name] = made.container;
    return made;
  }
  CompanionFacts started_companion(SandboxFacts& facts, const std::string& name,
                                   const std::optional<Check>& check = std::nullopt) {
    CompanionFacts made = companion(facts, name, check);
    must(engine_->start_companion(made));
    facts.containers[name] = made.container;
    return made;
  }
  CompanionSeen look(const CompanionFacts& facts) {
    const auto seen = run(engine_->inspect_companion(facts));
    EXPECT_TRUE(seen.has_value()) << seen.error().message();
    return seen ? *seen : CompanionSeen{.state = CompanionSeen::State::Foreign};
  }
  State state_of(const CompanionFacts& facts) { return look(facts).state; }
  // As its own engine sees it. A real one checks it by itself.
  void set_health(const CompanionFacts& facts, CompanionSeen::Health health) {
    if (GetParam() == "Memory") {
      machine_.set_health({facts.sandbox_id, facts.name()}, health, "fine");
    }
    if (GetParam() != "Fake") return;
    const bool is_healthy = health == CompanionSeen::Health::Healthy;
    fake_->engine().set_health(*fake_->engine().find_container(facts.container.container_id()),
                               is_healthy ? "healthy" : "unhealthy", "fine\n");
  }

  MemoryMachine machine_;
  TestLoop loop_;
  TempDirectory temp_directory_;
  Listener listener_;
  Claims claims_;
  std::unique_ptr<FakeDocker> fake_;
  std::unique_ptr<Engine> engine_;

 private:
  std::string image() const {
    return GetParam() == "Real" ? setting("AGBOX_ENGINE_IMAGE") : "busybox";
  }
  DockerEngineOptions docker_options() {
    const std::string pool = setting("AGBOX_ENGINE_SUBNET", "10.99.0") + ".0/24";
    return {.socket_path = fake_ ? fake_->socket_path() : setting("AGBOX_ENGINE_SOCKET"),
            .environment = {},
            .instance_id = instance_,
            .address_pool = parse_ipv4_network(pool).value(),
            .host = {.networks_in_use = [](auto) { return std::vector<Ipv4Network>(); },
                     .has_link = [](const auto&) { return false; },
                     .find_links = [](auto) { return std::vector<std::string>(); },
                     .remove_link = [](const auto&) { return Result<>(); }},
            .seccomp_profile = "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}"};
  }

  std::string instance_ = random_uuid();
  std::map<std::string, SandboxFacts> made_;
  TestTask<bool> watch_;
};

INSTANTIATE_TEST_SUITE_P(Engines, EnginePort, testing::ValuesIn(adapters()),
                         [](const auto& adapter) { return adapter.param; });

TEST_P(EnginePort, ReportsAnIdentityThatStays) {
  EXPECT_THAT(engine_->name(), Not(IsEmpty()));
  const std::string id = listener_.id;
  EXPECT_THAT(id, Not(IsEmpty()));
  stop_watch();
  start_watch();
  EXPECT_EQ(listener_.id, id);
}

TEST_P(EnginePort, EnsuringAWorkloadTwiceCreatesOne) {
  SandboxFacts& facts = created("box");
  const SandboxInspection first = look(facts);
  EXPECT_EQ(first.seen.primary, PrimarySeen::Created);
  EXPECT_TRUE(first.seen.has_network);
  const std::string id = facts.primary_id();
  EXPECT_THAT(id, Not(IsEmpty()));
  must(engine_->ensure_workload(facts, attachments()));
  EXPECT_EQ(facts.primary_id(), id);
  // As after a create whose answer was lost.
  facts.containers.clear();
  must(engine_->ensure_image(facts, [](const std::string&) {}));
  must(engine_->ensure_workload(facts, attachments()));
  EXPECT_EQ(facts.primary_id(), id);
}

TEST_P(EnginePort, ReportsAContainerThatAnotherProcessUnpausesOrStops) {
  SandboxFacts& facts = started("box");
  must(engine_->pause(facts));
  EXPECT_THAT(listener_.doubted, IsEmpty());
  const auto another = make_engine();
  must(another->unpause(facts));
  loop_.run_until([&] { return listener_.doubted.contains(facts.sandbox_id); });
  listener_.doubted.clear();
  must(another->stop(facts));
  loop_.run_until([&] { return listener_.doubted.contains(facts.sandbox_id); });
  loop_.run(another->shut_down());
}

TEST_P(EnginePort, EachStartHasAMarkOfItsOwn) {
  SandboxFacts& facts = started("box");
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Running);
  EXPECT_FALSE(look(facts).loss);
  const SandboxFacts first = facts;
  must(engine_->stop(facts));
  must(engine_->start(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Running);
  EXPECT_EQ(look(first).seen.primary, PrimarySeen::OtherStart)
      << "not the start that these facts are of";
}

TEST_P(EnginePort, APortIsOfOneAtATimeWhileItRuns) {
  v1::PortMapping port;
  port.set_host_port(18872);
  port.set_container_port(80);
  for (const char* name : {"first", "second"}) {
    *sandbox(name).spec.create_spec.add_ports() = port;
    created(name);
  }
  SandboxFacts& first = sandbox("first");
  SandboxFacts& second = sandbox("second");
  EXPECT_EQ(run(engine_->publisher_of(port)).value(), std::nullopt);
  must(engine_->start(first));
  const auto refused = run(engine_->start(second));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::PortInUse) << refused.error().message();
  EXPECT_EQ(refused.error().reason(), reason::kPortInUse);
  EXPECT_TRUE(refused.error().is_definite());
  EXPECT_THAT(run(engine_->publisher_of(port)).value().value_or(""), HasSubstr(first.sandbox_id));
  must(engine_->stop(first));
  EXPECT_EQ(run(engine_->publisher_of(port)).value(), std::nullopt);
  must(engine_->start(second));
}

TEST_P(EnginePort, AStopMayBeRepeatedAndIsSeen) {
  SandboxFacts& facts = started("box");
  must(engine_->stop(facts));
  must(engine_->stop(facts));
  const SandboxInspection seen = look(facts);
  EXPECT_EQ(seen.seen.primary, PrimarySeen::Exited);
  ASSERT_TRUE(seen.loss);
  EXPECT_THAT(seen.loss->how, HasSubstr("exited with code"));
}

TEST_P(EnginePort, APauseMayBeRepeatedAndIsTheSameStart) {
  SandboxFacts& facts = started("box");
  must(engine_->pause(facts));
  must(engine_->pause(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Paused);
  EXPECT_FALSE(look(facts).loss);
  must(engine_->unpause(facts));
  must(engine_->unpause(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Running);
  must(engine_->pause(facts));
  must(engine_->stop(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Exited);
  must(engine_->unpause(facts));
  const auto refused = run(engine_->pause(facts));
  ASSERT_FALSE(refused.has_value()) << "what does not run cannot be paused";
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Conflict);
}

TEST_P(EnginePort, StopsByLabelsAloneIfNothingElseIsKnown) {
  SandboxFacts& facts = started("box");
  SandboxFacts unknown = facts;
  unknown.containers.clear();
  must(engine_->stop_all(unknown));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Exited);
}

TEST_P(EnginePort, AWorkloadThatIsRequiredIsStoppedFirst) {
  SandboxFacts& facts = started("box");
  must(engine_->require_workload(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Exited);
  must(engine_->start(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Running);
}

TEST_P(EnginePort, ARemovalTakesAllOfItAndMayBeRepeated) {
  SandboxFacts& facts = started("box");
  const SandboxFacts before = facts;
  must(engine_->remove(facts));
  must(engine_->remove(facts));
  EXPECT_EQ(look(before).seen.primary, PrimarySeen::Missing);
  const auto required = run(engine_->require_workload(before));
  ASSERT_FALSE(required.has_value());
  EXPECT_EQ(required.error().kind(), EngineErrorKind::Refused);
  EXPECT_THAT(required.error().message(), HasSubstr("is gone"));
}

TEST_P(EnginePort, ASweepRemovesWhatADeletedSandboxLeftAndNothingElse) {
  SandboxFacts& kept = started("kept");
  SandboxFacts& left = started("left");
  SandboxFacts& unknown = started("unknown");
  claims_.claims[kept.sandbox_id] = listed_claim(kept);
  claims_.claims[left.sandbox_id] = {.kind = SandboxClaim::Kind::Deleted};
  must(engine_->sweep(claims_));
  EXPECT_EQ(look(kept).seen.primary, PrimarySeen::Running);
  EXPECT_EQ(look(left).seen.primary, PrimarySeen::Missing);
  EXPECT_EQ(look(unknown).seen.primary, PrimarySeen::Running) << "may hold a user's work";
  ASSERT_EQ(engine_->unknown_primaries().size(), 1U);
  EXPECT_EQ(engine_->unknown_primaries().front().sandbox_id, unknown.sandbox_id);
}

// --- companions ---

TEST_P(EnginePort, EnsuringACompanionTwiceCreatesOne) {
  SandboxFacts& facts = sandbox("box");
  CompanionFacts db = companion(facts, "db");
  const std::string id = db.container.container_id();
  EXPECT_THAT(id, Not(IsEmpty()));
  EXPECT_EQ(state_of(db), State::Created);
  must(engine_->ensure_companion(db, {}));
  EXPECT_EQ(db.container.container_id(), id);
  // As after a create whose answer was lost.
  db.container.Clear();
  EXPECT_EQ(state_of(db), State::Missing);
  must(engine_->ensure_companion(db, {}));
  EXPECT_EQ(db.container.container_id(), id);
  EXPECT_NE(companion(facts, "cache").container.container_id(), id);
}

TEST_P(EnginePort, AGuestJoinsOnlyACompanionThatWasCreatedForIt) {
  SandboxFacts& facts = sandbox("box");
  CompanionFacts db = companion(facts, "db");
  const auto refused = run(engine_->start_companion_guest(db));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Refused);
  db.container.set_container_id("gone");
  EXPECT_EQ(run(engine_->start_companion_guest(db)).error().kind(), EngineErrorKind::Refused);
}

TEST_P(EnginePort, ACompanionStartsOnTheSandboxsNetworkAndEachStartHasAMark) {
  SandboxFacts& facts = sandbox("box");
  CompanionFacts db = companion(facts, "db");
  const auto refused = run(engine_->start_companion(db));
  ASSERT_FALSE(refused.has_value()) << "there is no network yet";
  EXPECT_TRUE(refused.error().is_definite());
  EXPECT_EQ(state_of(db), State::Created);
  created("box");

  must(engine_->start_companion(db));
  const CompanionSeen seen = look(db);
  EXPECT_EQ(seen.state, State::Running);
  EXPECT_TRUE(seen.has_network);
  EXPECT_EQ(seen.health, CompanionSeen::Health::None);
  EXPECT_THAT(seen.start_mark, Not(IsEmpty()));
  EXPECT_EQ(seen.start_mark, db.container.engine_started_at());
  EXPECT_FALSE(seen.loss);
  must(engine_->start_companion(db));
  EXPECT_EQ(db.container.engine_started_at(), seen.start_mark) << "it runs already";

  must(engine_->stop_companion(db));
  must(engine_->stop_companion(db));
  EXPECT_EQ(state_of(db), State::Exited);
  ASSERT_TRUE(look(db).loss);
  EXPECT_THAT(look(db).loss->how, HasSubstr("exited with code"));
  EXPECT_TRUE(look(db).loss->exit_code);
  must(engine_->start_companion(db));
  EXPECT_NE(db.container.engine_started_at(), seen.start_mark);
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Created) << "each has a life of its own";
}

TEST_P(EnginePort, StartsAndRemovalsOfContainersAreReported) {
  SandboxFacts& facts = started("box");
  const auto wait_for_report = [&] {
    loop_.run_until([&] { return listener_.changed.erase(facts.sandbox_id) > 0; });
  };
  wait_for_report();
  CompanionFacts db = companion(facts, "db");
  must(engine_->start_companion(db));
  wait_for_report();
  must(engine_->remove(facts));
  wait_for_report();
}

TEST_P(EnginePort, WhatAContainerUsesIsKnown) {
  SandboxFacts& facts = created("box");
  const ContainerId primary{listener_.id, facts.primary_id()};
  EXPECT_FALSE(run(engine_->measure(primary)).value().is_running);
  must(engine_->start(facts));
  EXPECT_TRUE(run(engine_->measure(primary)).value().is_running);
  const auto gone = run(engine_->measure({listener_.id, "0123456789ab"}));
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().kind(), EngineErrorKind::NotFound);
}

TEST_P(EnginePort, AProbeRunsTheCheckOfACompanion) {
  SandboxFacts& facts = created("box");
  const CompanionFacts well = started_companion(facts, "well", Check{});
  const CompanionFacts ill = started_companion(facts, "ill", Check{.exit_code = 3, .output = "no"});
  const CompanionFacts slow = started_companion(facts, "slow", Check{.has_end = false});
  const CompanionFacts none = started_companion(facts, "none");
  const CompanionFacts still = companion(facts, "still", Check{});
  const auto probe = [this](const CompanionFacts& of, std::chrono::milliseconds timeout) {
    return run(engine_->probe_companion(of, timeout));
  };
  EXPECT_EQ(probe(well, 30s).value(), (ProbeOutcome{.exit_code = 0, .output = "fine"}));
  EXPECT_EQ(probe(ill, 30s).value(), (ProbeOutcome{.exit_code = 3, .output = "no"}));
  EXPECT_TRUE(probe(none, 30s).value().is_healthy());
  const auto late = probe(slow, 300ms);
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind(), EngineErrorKind::TimedOut);
  const auto refused = probe(still, 30s);
  ASSERT_FALSE(refused.has_value()) << "it does not run";
  EXPECT_EQ(refused.error().kind(), EngineErrorKind::Refused);
  for (const CompanionFacts& of : {well, ill, slow, none}) EXPECT_EQ(state_of(of), State::Running);
}

TEST_P(EnginePort, TheHealthOfACompanionIsSeenAndItsChangeReported) {
  SandboxFacts& facts = started("box");
  const CompanionFacts db = started_companion(facts, "db", Check{});
  EXPECT_NE(look(db).health, CompanionSeen::Health::None);
  EXPECT_NE(look(db).health, CompanionSeen::Health::Unhealthy);
  set_health(db, CompanionSeen::Health::Healthy);
  loop_.run_until([&] { return !listener_.doubted_companions.empty(); });
  EXPECT_TRUE(listener_.doubted_companions.contains({facts.sandbox_id, "db"}));
  const CompanionSeen seen = look(db);
  EXPECT_EQ(seen.health, CompanionSeen::Health::Healthy);
  EXPECT_EQ(seen.probe_output, "fine");
  EXPECT_THAT(listener_.doubted, IsEmpty()) << "the primary is another container";
}

TEST_P(EnginePort, ReportsACompanionThatAnotherProcessUnpausesOrStops) {
  SandboxFacts& facts = started("box");
  const CompanionFacts db = started_companion(facts, "db");
  const auto another = make_engine();
  must(engine_->pause(facts));
  EXPECT_THAT(listener_.doubted_companions, IsEmpty());
  must(another->unpause(facts));
  loop_.run_until([&] { return !listener_.doubted_companions.empty(); });
  loop_.run_until([&] { return !listener_.doubted.empty(); });
  listener_.doubted_companions.clear();
  listener_.doubted.clear();
  must(another->stop_companion(db));
  loop_.run_until([&] { return !listener_.doubted_companions.empty(); });
  EXPECT_TRUE(listener_.doubted_companions.contains({facts.sandbox_id, "db"}));
  EXPECT_THAT(listener_.doubted, IsEmpty());
  loop_.run(another->shut_down());
}

TEST_P(EnginePort, StopAndPauseAreOfAllContainersThatTheFactsList) {
  SandboxFacts& facts = started("box");
  const CompanionFacts db = started_companion(facts, "db");
  const CompanionFacts cache = started_companion(facts, "cache");
  const CompanionFacts ended = companion(facts, "ended");
  const CompanionFacts unlisted = started_companion(facts, "unlisted");
  facts.containers.erase("unlisted");
  facts.containers["never made"];
  facts.containers["gone"].set_container_id("0123456789ab");
  must(engine_->pause(facts));
  must(engine_->pause(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Paused);
  EXPECT_EQ(state_of(db), State::Paused);
  EXPECT_EQ(state_of(cache), State::Paused);
  EXPECT_EQ(state_of(ended), State::Created);
  EXPECT_EQ(state_of(unlisted), State::Running);
  must(engine_->unpause(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Running);
  EXPECT_EQ(state_of(db), State::Running);
  must(engine_->stop(facts));
  EXPECT_EQ(look(facts).seen.primary, PrimarySeen::Exited);
  EXPECT_EQ(state_of(db), State::Exited);
  EXPECT_EQ(state_of(cache), State::Exited);
  EXPECT_EQ(state_of(unlisted), State::Running);
  must(engine_->stop_all(facts));
  EXPECT_EQ(state_of(unlisted), State::Exited) << "by its labels";
}

TEST_P(EnginePort, TheEndOfWhatACompanionPrintedIsKnown) {
  SandboxFacts& facts = created("box");
  CompanionFacts db = companion(facts, "db");
  EXPECT_EQ(run(engine_->companion_output(db)).value(), "");
  CompanionFacts missing = db;
  missing.container.set_container_id("0123456789ab");
  missing.spec.set_name("missing");
  EXPECT_EQ(run(engine_->companion_output(missing)).value(), "");

  CompanionFacts talking = db;
  talking.spec.set_name("talking");
  talking.spec.mutable_command()->at(2) = "echo first; echo the last; exit 4";
  talking.container.Clear();
  must(engine_->ensure_companion(talking, {}));
  const MemoryMachine::CompanionId id{facts.sandbox_id, "talking"};
  if (fake_) {
    fake_->engine().print(*fake_->engine().find_container(talking.container.container_id()),
                          "first\nthe last\n");
    fake_->engine().on_start = [this](fake::Container& container) {
      fake_->engine().end_container(container, 4);
    };
  }
  if (GetParam() == "Memory") machine_.companions.at(id).output = "first\\nthe last";
  must(engine_->start_companion(talking));
  if (GetParam() == "Memory") machine_.end(id, 4);
  loop_.run_until([&] { return listener_.doubted_companions.contains(id); });
  EXPECT_EQ(look(talking).loss.value_or(ContainerLoss()).exit_code, 4);
  EXPECT_EQ(run(engine_->companion_output(talking)).value(), "first\\nthe last");

  // The whole of it, which ends where the container has ended.
  const ContainerId container{listener_.id, talking.container.container_id()};
  const auto log = run(engine_->open_log(container, {.follow = true})).value();
  std::string printed;
  while (const auto piece = run(log->read()).value()) printed += piece->data;
  EXPECT_THAT(printed, testing::StartsWith("first"));
  EXPECT_THAT(printed, HasSubstr("the last"));
  const auto gone = run(engine_->open_log({listener_.id, "0123456789ab"}, {}));
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().kind(), EngineErrorKind::NotFound);
}

// As many as a spec allows, on the smallest network.
TEST_P(EnginePort, AsManyCompanionsAsTheNetworkHoldsAreRemovedWithIt) {
  SandboxFacts& facts = started("box");
  std::vector<CompanionFacts> all;
  for (int i = 0; i < 12; ++i) {
    all.push_back(started_companion(facts, "service" + std::to_string(i)));
  }
  for (const CompanionFacts& each : all) EXPECT_EQ(state_of(each), State::Running);
  const SandboxFacts before = facts;
  must(engine_->remove(facts));
  for (const CompanionFacts& each : all) EXPECT_EQ(state_of(each), State::Missing);
  EXPECT_EQ(look(before).seen.primary, PrimarySeen::Missing);
  EXPECT_THAT(facts.containers, IsEmpty());
}

TEST_P(EnginePort, CompanionsWhoseContainersWouldHaveOneNameAreTwo) {
  SandboxFacts& one = created("team");
  const std::string suffix = one.sandbox_id.substr(std::string("team").size());
  SandboxFacts& other = created("team" + suffix + "-a");
  ASSERT_EQ(other.sandbox_id, one.sandbox_id + "-a" + suffix);
  const CompanionFacts first = started_companion(one, "a" + suffix + "-b");
  const CompanionFacts second = started_companion(other, "b");
  EXPECT_NE(first.container.container_id(), second.container.container_id());
  EXPECT_EQ(companion(one, first.name()).container.container_id(), first.container.container_id());
  EXPECT_EQ(companion(other, "b").container.container_id(), second.container.container_id());
  must(engine_->remove(one));
  EXPECT_EQ(state_of(first), State::Missing);
  EXPECT_EQ(state_of(second), State::Running);
}

TEST_P(EnginePort, ASweepRemovesCompanionsThatNoSandboxClaims) {
  SandboxFacts& kept = started("kept");
  const CompanionFacts claimed = started_companion(kept, "claimed");
  SandboxFacts with_claimed = kept;
  const CompanionFacts forgotten = started_companion(kept, "forgotten");
  SandboxFacts& unknown = started("unknown");
  const CompanionFacts orphan = started_companion(unknown, "orphan");
  claims_.claims[kept.sandbox_id] = listed_claim(with_claimed);
  must(engine_->sweep(claims_));
  EXPECT_EQ(state_of(claimed), State::Running);
  EXPECT_EQ(state_of(forgotten), State::Missing);
  EXPECT_EQ(state_of(orphan), State::Missing);
  EXPECT_EQ(look(kept).seen.primary, PrimarySeen::Running);
  EXPECT_EQ(look(unknown).seen.primary, PrimarySeen::Running) << "may hold a user's work";
}

}  // namespace
}  // namespace agbox
