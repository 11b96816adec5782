// SPDX-License-Identifier: Apache-2.0
// What the checks of a diagnosis gather, on the whole control plane; doctor_checks_test.cpp tests
// how they judge it.
#include "control/doctor/diagnosis.h"

#include <fcntl.h>
#include <sys/file.h>

#include <optional>

#include "base/unique_fd.h"
#include "model/object_names.h"
#include "model/reasons.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

class DiagnosisTest : public ControlTest {
 protected:
  DiagnosisTest() {
    lock_file_ = temp_directory_.path() / "agboxd.lock";
    lock_.reset(::open(lock_file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    EXPECT_EQ(::flock(lock_.get(), LOCK_EX), 0);
    isolation_.facts = FirewallFacts{
        .tables = {{.name = "inet agents_sandbox_1", .difference = {}}}, .dropping_chains = {}};
  }

  // "FINDING_VERDICT_OK sentence" of all findings about it, each with a newline.
  std::string findings_of(const std::string& check, const std::vector<std::string>& images = {}) {
    const auto response = diagnose(images);
    if (!response) return response.error().message();
    std::string told;
    for (const v1::Finding& finding : response->findings()) {
      if (finding.check() != check) continue;
      told += v1::FindingVerdict_Name(finding.verdict()) + " " + finding.sentence() + "\n";
    }
    return told;
  }

  UniqueFd lock_;
};

TEST_F(DiagnosisTest, OfAWorkingDaemonFindsNothingBroken) {
  start();
  create_ready("box-1");
  const auto response = diagnose();
  ASSERT_TRUE(response.has_value()) << response.error().message();
  std::vector<std::string> checks;
  for (const v1::Finding& finding : response->findings()) {
    if (checks.empty() || checks.back() != finding.check()) checks.push_back(finding.check());
    // Of the machine that the test runs on nothing is known.
    if (finding.check() == "ip-forward" || finding.check() == "disk") continue;
    if (finding.check() == "capability") continue;
    EXPECT_NE(finding.verdict(), v1::FINDING_VERDICT_BROKEN) << finding.ShortDebugString();
  }
  EXPECT_THAT(checks, ElementsAre("engine", "live-restore", "layer-quota", "capability", "firewall",
                                  "isolation", "other-firewalls", "ip-forward", "address-pool",
                                  "resolvers", "store", "lock", "guest-program", "disk",
                                  "user-limits", "images", "unknown-primaries"));
  EXPECT_THAT(findings_of("engine"),
              HasSubstr("OK Docker " + engine().version + " (API 1.41) is reachable at " +
                        docker().socket_path()));
  EXPECT_THAT(findings_of("isolation"), HasSubstr("OK verified now for 1 running sandbox\n"));
  EXPECT_THAT(findings_of("images"), HasSubstr("OK 1 image is on the engine\n"));
  EXPECT_THAT(findings_of("lock"), HasSubstr("OK "));
  EXPECT_THAT(findings_of("store"), HasSubstr("OK "));
}

TEST_F(DiagnosisTest, SeesWhatTheEngineIsNowAndNotWhatItWas) {
  start();
  wait_swept();
  EXPECT_THAT(findings_of("live-restore"), HasSubstr("WARNING "));
  engine().info_overrides["LiveRestoreEnabled"] = true;
  EXPECT_THAT(findings_of("live-restore"), HasSubstr("OK "));
  EXPECT_THAT(findings_of("layer-quota"), HasSubstr("UNKNOWN "));
  engine().info_overrides["DriverStatus"] =
      boost::json::parse(R"([["Backing Filesystem","extfs"]])");
  EXPECT_THAT(findings_of("layer-quota"), HasSubstr("WARNING "));
  engine().info_overrides["SecurityOptions"] = boost::json::array{"name=rootless"};
  EXPECT_THAT(findings_of("engine"), HasSubstr("BROKEN Docker"));
}

TEST_F(DiagnosisTest, WithoutAnEngineTellsTheRest) {
  docker().stop_listening();
  start();
  const auto response = diagnose({"busybox"});
  ASSERT_TRUE(response.has_value()) << response.error().message();
  EXPECT_THAT(findings_of("engine"), HasSubstr("BROKEN the Docker Engine is unreachable: "));
  EXPECT_THAT(findings_of("images", {"busybox"}), HasSubstr("UNKNOWN not checked: "));
  EXPECT_THAT(findings_of("unknown-primaries"), HasSubstr("UNKNOWN not checked: "));
  EXPECT_THAT(findings_of("store"), HasSubstr("OK "));
  EXPECT_THAT(findings_of("firewall"), HasSubstr("OK "));
}

TEST_F(DiagnosisTest, LooksForTheImagesOfSandboxesAndOfTheClient) {
  engine().add_image("debian:12");
  start();
  create_ready("box-1");
  EXPECT_THAT(findings_of("images", {"debian:12", "busybox"}), HasSubstr("OK 2 images are"));
  EXPECT_THAT(findings_of("images", {"nobody/has-this:1"}),
              HasSubstr("WARNING nobody/has-this:1 is not on the engine: the next create"));
}

TEST_F(DiagnosisTest, ReportsAStrayPrimaryAndLeavesItAlone) {
  start();
  wait_swept();
  EXPECT_THAT(findings_of("unknown-primaries"), HasSubstr("OK "));
  std::string labels;
  for (const auto& [key, value] : primary_labels(instance_, "lost-1", {})) {
    labels += (labels.empty() ? "\"" : ",\"") + key + "\":\"" + value + "\"";
  }
  engine().answer({.method = "POST",
                   .path = "/containers/create",
                   .query = {{"name", "agbox-primary-lost-1"}},
                   .body = R"({"Image":"busybox","Labels":{)" + labels + "}}",
                   .registry_auth = {}});
  EXPECT_THAT(findings_of("unknown-primaries"),
              HasSubstr("WARNING container agbox-primary-lost-1 carries our label, for sandbox "
                        "lost-1"));
  EXPECT_THAT(docker().container_names(), UnorderedElementsAre("agbox-primary-lost-1"));
}

TEST_F(DiagnosisTest, ProvesTheIsolationOfEverySandboxThatRuns) {
  start();
  create_ready("box-1");
  create_ready("box-2");
  stop_sandbox("box-2");
  isolation_.verifications.clear();
  isolation_.verification_problem = "the rules are gone";
  EXPECT_EQ(findings_of("isolation"), "FINDING_VERDICT_BROKEN sandbox box-1: the rules are gone\n");
  EXPECT_THAT(isolation_.verifications, ElementsAre(bridge_name(instance_, "box-1")));
}

TEST_F(DiagnosisTest, DoesNotWaitForManyThatTakeTooLong) {
  start();
  for (const char* id : {"box-1", "box-2", "box-3", "box-4", "box-5"}) create_ready(id);
  isolation_.verification_problem = "another firewall drops it";
  isolation_.on_verification = [this] { clock_.advance(std::chrono::seconds(7)); };
  EXPECT_EQ(findings_of("isolation"),
            "FINDING_VERDICT_BROKEN sandbox box-1: another firewall drops it\n"
            "FINDING_VERDICT_BROKEN sandbox box-2: another firewall drops it\n"
            "FINDING_VERDICT_BROKEN sandbox box-3: another firewall drops it\n"
            "FINDING_VERDICT_UNKNOWN 2 running sandboxes were not checked, because those before "
            "took too long\n");
}

TEST_F(DiagnosisTest, ASandboxThatCameThroughIsBrokenAlsoWhereItDoesNotSaySo) {
  start();
  create_ready("box-1");
  guests_.freeze(primary_container_name("box-1"));
  guests_.cut(primary_container_name("box-1"));
  run_until_idle();
  isolation_.is_reached = true;
  EXPECT_EQ(findings_of("isolation"),
            "FINDING_VERDICT_BROKEN sandbox box-1: it is not isolated: it came through\n");
}

TEST_F(DiagnosisTest, ASandboxThatCannotBeAskedIsUnknownAndNotBroken) {
  start();
  create_ready("box-1");
  create_ready("box-2");
  guests_.freeze(primary_container_name("box-1"));
  guests_.cut(primary_container_name("box-1"));
  run_until_idle();
  const std::string told = findings_of("isolation");
  EXPECT_THAT(told,
              HasSubstr("FINDING_VERDICT_UNKNOWN sandbox box-1: its rules are in place, but could "
                        "not be tested from inside: the guest does not answer"));
  EXPECT_THAT(told, HasSubstr("FINDING_VERDICT_OK verified now for 1 running sandbox\n"));
  // Where the rules themselves are wrong, nobody need be asked.
  isolation_.verification_problem = "the rules are gone";
  EXPECT_THAT(findings_of("isolation"),
              AnyOf(HasSubstr("BROKEN sandbox box-1: the rules are gone\n"),
                    HasSubstr("BROKEN sandbox box-1 is paused: the rules are gone\n")));
}

TEST_F(DiagnosisTest, TellsWhatTheFirewallShows) {
  start();
  isolation_.facts->tables[0].difference = "table inet agents_sandbox_1 is missing";
  isolation_.facts->dropping_chains = {
      {.table = "inet filter", .chain = "forward", .accepts_nothing = true}};
  EXPECT_THAT(findings_of("firewall"), HasSubstr("BROKEN "));
  EXPECT_THAT(findings_of("other-firewalls"), HasSubstr("BROKEN "));
}

TEST_F(DiagnosisTest, TellsWhyTheFirewallCouldNotBeLoaded) {
  isolation_.start_problem = "the kernel knows no nftables";
  start();
  EXPECT_THAT(findings_of("firewall"),
              HasSubstr("BROKEN sandboxes cannot be isolated, so none is created or started: the "
                        "kernel knows no nftables"));
}

TEST_F(DiagnosisTest, WaitsForTheFirewallOfADaemonThatHasJustStarted) {
  isolation_.holds_start = true;
  start();
  wait_swept();
  std::optional<Result<v1::DiagnoseResponse>> answer;
  plane().diagnose({}, [&](Result<v1::DiagnoseResponse> told) { answer = std::move(told); });
  run_until_idle();
  EXPECT_FALSE(answer.has_value());
  isolation_.finish_start();
  run_until([&] { return answer.has_value(); });
  EXPECT_TRUE(answer->has_value());
}

TEST_F(DiagnosisTest, SeesThatTheLockIsNotTheDaemonsAnyMore) {
  start();
  fs::remove(lock_file_);
  EXPECT_THAT(findings_of("lock"), HasSubstr("BROKEN "));
  const UniqueFd other(::open(lock_file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_THAT(findings_of("lock"), HasSubstr("BROKEN "));
}

TEST_F(DiagnosisTest, SeesThatTheGuestProgramIsGone) {
  start();
  EXPECT_THAT(findings_of("guest-program"), HasSubstr("OK "));
  fs::remove_all(temp_directory_.path() / state_root_ / "guests");
  EXPECT_THAT(findings_of("guest-program"), HasSubstr("BROKEN "));
}

TEST_F(DiagnosisTest, CountsTheNetworksThatAreLeft) {
  start();
  wait_swept();
  const std::string before = findings_of("address-pool");
  create_ready("box-1");
  EXPECT_NE(findings_of("address-pool"), before);
  EXPECT_THAT(findings_of("address-pool"), HasSubstr("15 of 16 networks"));
}

TEST_F(DiagnosisTest, OneAtATimeAndEachIsAnswered) {
  start();
  wait_swept();
  docker().hold("GET /info");
  int answered = 0;
  for (int i = 0; i < 3; ++i) {
    plane().diagnose({}, [&](const Result<v1::DiagnoseResponse>& response) {
      EXPECT_TRUE(response.has_value());
      ++answered;
    });
  }
  run_until([&] { return docker().held("GET /info") == 1; });
  run_until_idle();
  EXPECT_EQ(docker().held("GET /info"), 1);
  docker().clear_faults();
  docker().release("GET /info");
  run_until([&] { return answered == 3; });
}

// A shutdown may take seconds, and an engine that hangs takes longer.
TEST_F(DiagnosisTest, IsAnsweredAtOnceWhenTheDaemonEnds) {
  start();
  wait_swept();
  docker().hang("GET /info");
  std::vector<std::string> answers;
  const auto note = [&](const Result<v1::DiagnoseResponse>& response) {
    answers.push_back(response ? "findings" : std::string(response.error().reason().name));
  };
  plane().diagnose({}, note);
  run_until([&] { return docker().held("GET /info") == 1; });
  plane().diagnose({}, note);
  plane().release_waiting_calls();
  plane().diagnose({}, note);
  run_until([&] { return answers.size() == 3; });
  EXPECT_THAT(answers, testing::Each(std::string(reason::kShuttingDown.name)));
  docker().clear_faults();
}

TEST(DiagnoseRequest, NamesOnlyImages) {
  v1::DiagnoseRequest request;
  request.add_images("ghcr.io/agents-sandbox/coding-runtime:latest");
  request.add_images("sha256:" + std::string(64, 'a'));
  EXPECT_TRUE(parse_diagnose_request(request).has_value());
  for (const std::string& bad :
       {std::string(), std::string("Not An Image"), std::string(2000, 'a')}) {
    v1::DiagnoseRequest wrong;
    wrong.add_images(bad);
    const auto refused = parse_diagnose_request(wrong);
    ASSERT_FALSE(refused.has_value()) << bad;
    EXPECT_EQ(refused.error().reason(), reason::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr("images: "));
  }
  for (int i = 0; i < 20; ++i) request.add_images("busybox");
  EXPECT_THAT(parse_diagnose_request(request).error().message(), HasSubstr("at most 16"));
}

}  // namespace
}  // namespace agbox
