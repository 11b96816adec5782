// SPDX-License-Identifier: Apache-2.0
// agbox doctor: what is printed, and how it ends.
#include <gmock/gmock.h>

#include "cli/doctor/finding_text.h"
#include "unit/cli/commands_fixture.h"

namespace agbox::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Doctor : public Commands {
 protected:
  Doctor() {
    ::setenv("XDG_DATA_HOME", temp_directory_.path().c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", temp_directory_.path().c_str(), 1);
    ::setenv("DOCKER_HOST", ("unix://" + (temp_directory_.path() / "no-engine").string()).c_str(),
             1);
  }
  ~Doctor() override {
    for (const char* name : {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "DOCKER_HOST"}) ::unsetenv(name);
  }

  static void tell(test::ScriptedDaemon& daemon, v1::FindingVerdict verdict,
                   const std::string& check, const std::string& sentence,
                   const std::string& remedy = {}) {
    v1::Finding& finding = *daemon.diagnosis.add_findings();
    finding.set_check(check);
    finding.set_verdict(verdict);
    finding.set_sentence(sentence);
    finding.set_remedy(remedy);
  }
};

void can_diagnose(test::ScriptedDaemon& daemon) {
  daemon.ping_response.add_features("diagnose");
}

TEST_F(Doctor, PrintsALineForEachFindingAndWhatMendsIt) {
  test::ScriptedDaemon daemon(socket(), can_diagnose);
  tell(daemon, v1::FINDING_VERDICT_OK, "engine", "Docker answers");
  tell(daemon, v1::FINDING_VERDICT_WARNING, "live-restore", "it is off", "turn it on");
  tell(daemon, v1::FINDING_VERDICT_UNKNOWN, "disk", "nobody knows");
  EXPECT_EQ(run({"doctor"}), 0) << "warnings do not fail";
  EXPECT_EQ(out_,
            "ok       engine        Docker answers\n"
            "warning  live-restore  it is off\n"
            "         fix: turn it on\n"
            "unknown  disk          nobody knows\n"
            "1 warning, 1 unknown, 1 ok\n");
  EXPECT_EQ(error_, "");
  EXPECT_THAT(daemon.calls(),
              Contains("Diagnose images: \"ghcr.io/agents-sandbox/coding-runtime:latest\""));
}

TEST_F(Doctor, EndsWithOneWhereSomethingIsBroken) {
  test::ScriptedDaemon daemon(socket(), can_diagnose);
  tell(daemon, v1::FINDING_VERDICT_BROKEN, "ip-forward", "it is 0", "sudo sysctl");
  EXPECT_EQ(run({"doctor"}), 1);
  EXPECT_THAT(out_, HasSubstr("broken   ip-forward  it is 0\n         fix: sudo sysctl\n"));
  EXPECT_EQ(error_, "");
}

TEST_F(Doctor, WithoutARuntimeDirectoryRunsAllOtherChecks) {
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(run({"doctor"}), 1);
  EXPECT_EQ(error_, "");
  EXPECT_THAT(out_, AllOf(HasSubstr("XDG_RUNTIME_DIR is required"),
                          HasSubstr("fix: export XDG_RUNTIME_DIR=/run/user/$(id -u)\n"),
                          HasSubstr("broken   engine "), HasSubstr("ok       store "),
                          HasSubstr("ok       configuration "), HasSubstr(" capability ")));
  EXPECT_THAT(out_, Not(HasSubstr(" lock ")));
}

TEST_F(Doctor, AsJsonIsTheDaemonsAnswer) {
  test::ScriptedDaemon daemon(socket(), can_diagnose);
  tell(daemon, v1::FINDING_VERDICT_BROKEN, "engine", "none", "start one");
  EXPECT_EQ(run({"doctor", "--json"}), 1);
  EXPECT_EQ(out_,
            "{\n  \"findings\": [\n    {\n      \"check\": \"engine\",\n"
            "      \"verdict\": \"FINDING_VERDICT_BROKEN\",\n      \"sentence\": \"none\",\n"
            "      \"remedy\": \"start one\"\n    }\n  ]\n}\n");
}

TEST_F(Doctor, CannotDriveTheTerminalOrForgeALine) {
  test::ScriptedDaemon daemon(socket(), can_diagnose);
  tell(daemon, v1::FINDING_VERDICT_OK, "engine", "x\x1b[2J\nok  forged", "y\nz");
  EXPECT_EQ(run({"doctor"}), 0);
  EXPECT_EQ(out_, "ok       engine  x\\x1b[2J ok forged\n         fix: y z\n1 ok\n");
}

TEST_F(Doctor, WithoutADaemonLooksItselfAndSaysHowToStartIt) {
  EXPECT_EQ(run({"doctor"}), 1);
  EXPECT_THAT(out_,
              StartsWith("broken   daemon         agboxd is not running: no process listens on " +
                         socket().string() + "\n         fix: systemctl --user start"));
  EXPECT_THAT(out_,
              AllOf(HasSubstr("lock           no process holds "), HasSubstr("\nok       store"),
                    HasSubstr("\nbroken   engine         no engine is reachable at ")));
  EXPECT_EQ(error_, "");
  EXPECT_EQ(run({"doctor", "--json"}), 1);
  EXPECT_THAT(out_, HasSubstr("\"check\": \"daemon\""));
}

TEST_F(Doctor, TellsADaemonThatIsTooOldForIt) {
  test::ScriptedDaemon daemon(socket());
  daemon.ping_response.set_version("0.0.1");
  EXPECT_EQ(run({"doctor"}), 1);
  EXPECT_THAT(error_, StartsWith("doctor: agboxd 0.0.1 is too old to run checks: "));
  EXPECT_THAT(daemon.calls(), Not(Contains(StartsWith("Diagnose"))));
}

TEST_F(Doctor, ShowsTheDaemonsRefusal) {
  test::ScriptedDaemon daemon(socket());
  daemon.status = test::ErrorInfoBytes{.code = grpc::UNAVAILABLE,
                                       .message = "agboxd is shutting down",
                                       .reason = "SHUTTING_DOWN"}
                      .status();
  EXPECT_EQ(run({"doctor"}), 1);
  EXPECT_EQ(error_, "doctor: agboxd is shutting down\n");
}

TEST(FindingsText, OfAVerdictThatIsNewerThanThisProgramIsUnknown) {
  v1::DiagnoseResponse response;
  v1::Finding& finding = *response.add_findings();
  finding.set_check("x");
  finding.set_verdict(static_cast<v1::FindingVerdict>(77));
  finding.set_sentence("y");
  EXPECT_EQ(findings_text(response), "unknown  x  y\n1 unknown\n");
  EXPECT_FALSE(has_broken(response));
}

TEST(FindingsText, CountsAtTheEnd) {
  v1::DiagnoseResponse response;
  for (int i = 0; i < 2; ++i) {
    response.add_findings()->set_verdict(v1::FINDING_VERDICT_WARNING);
    response.add_findings()->set_verdict(v1::FINDING_VERDICT_BROKEN);
  }
  EXPECT_THAT(findings_text(response), testing::EndsWith("\n2 broken, 2 warnings\n"));
}

}  // namespace
}  // namespace agbox::cli
