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
  void object_created(const std::string&) override {}
  void sweep_due() override {}

  std::string id;
  std::string problem;
  int reconciliations = 0;
  std::set<std::string> doubted;  // sandbox IDs
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

}  // namespace
}  // namespace agbox
