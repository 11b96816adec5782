// SPDX-License-Identifier: Apache-2.0
// What becomes of a sandbox that should run, or stand still, when the daemon looks for its
// container, its network and its guest's directory: every case that there is. One that was ready is
// looked for by the next daemon, one that is stopped after a gap in the engine's events.
#include <array>

#include "base/failpoint.h"
#include "guestlink/link_directory.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::HasSubstr;

struct FoundCase {
  const char* stored;     // Ready, Stopped
  const char* container;  // as in kContainers
  bool has_network;
  bool has_directory;
  char then;
};

constexpr std::array kContainers{"Missing",    "Created", "Running", "Paused",
                                 "OtherStart", "CutOff",  "Exited",  "Foreign"};

// One letter for each of kContainers: a adopted, r started again, - stays, else the failure: C
// container, N network, G guest.
struct FoundRow {
  const char* stored;
  bool has_network;
  bool has_directory;
  const char* then;
};
constexpr std::array kFoundRows{
    FoundRow{"Ready", true, true, "CraarrrC"},    FoundRow{"Ready", true, false, "CGGGGGGC"},
    FoundRow{"Ready", false, true, "CNNNNNNC"},   FoundRow{"Ready", false, false, "CNNNNNNC"},
    FoundRow{"Stopped", true, true, "C------C"},  FoundRow{"Stopped", true, false, "C------C"},
    FoundRow{"Stopped", false, true, "CNNNNNNC"}, FoundRow{"Stopped", false, false, "CNNNNNNC"},
};

std::vector<FoundCase> found_cases() {
  std::vector<FoundCase> cases;
  for (const FoundRow& row : kFoundRows) {
    for (std::size_t i = 0; i < kContainers.size(); ++i) {
      cases.push_back(
          {row.stored, kContainers.at(i), row.has_network, row.has_directory, row.then[i]});
    }
  }
  return cases;
}

class FoundContainerTest : public ExecTest, public testing::WithParamInterface<FoundCase> {
 protected:
  bool is(std::string_view container) const { return GetParam().container == container; }
  bool was_ready() const { return std::string_view(GetParam().stored) == "Ready"; }

  // Stopped by a daemon that the guest's directory was hidden from, where it is to be missing.
  void stop_by_the_next_daemon() {
    ASSERT_TRUE(failpoint::arm("stop.container.before=hold"));
    ASSERT_TRUE(ask_stop(kBox).has_value());
    wait_held_at("stop.container.before");
    stop();
    disarm();
    take_directory();
    start();
    wait_for_state(kBox, v1::SANDBOX_STATE_STOPPED);
    wait_swept();
  }

  void take_directory() {
    if (GetParam().has_directory) return;
    std::filesystem::remove_all(guestlink::LinkDirectory::path_of(link_root(), kBox));
  }

  // While nobody looks.
  void change_container() {
    const std::string known_start = primary(kBox).started_at;
    if (is("Running") || is("Paused") || is("CutOff") || is("Foreign")) {
      if (!was_ready()) start_by_hand(kBox);
      fake::Container& found = *engine().find_container(container());
      guests_.freeze(container());
      found.started_at = known_start;
      found.is_paused = is("Paused");
      if (is("CutOff")) engine().cut_off(found);
      if (is("Foreign")) found.labels[instance_label()] = "somebody-else";
    } else {
      if (was_ready()) end_container(1);
      if (is("Created")) engine().find_container(container())->status = "created";
      if (is("OtherStart")) {
        start_by_hand(kBox);
        engine().find_container(container())->started_at = "2031-01-01T00:00:00Z";
      }
    }
    if (!GetParam().has_network) {
      engine().find_container(container())->network.clear();
      engine().networks.erase(engine().find_network(network_name(kBox))->id);
    }
    if (is("Missing")) {
      engine().answer({.method = "DELETE",
                       .path = "/containers/" + primary(kBox).id,
                       .query = {{"force", "1"}},
                       .body = {},
                       .registry_auth = {}});
    }
  }

  // Somebody has looked, and whatever was decided is stored.
  void wait_inspected() {
    run_until([&] { return docker().calls("GET /containers/*/json") > 0; });
    wait_swept();
    run_until_idle();
    settle();
    run_until_idle();
  }

  void expect_adopted() {
    wait_inspected();
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
    EXPECT_FALSE(restarts().next().has_value());
    EXPECT_EQ(exec("since-before").state(), v1::EXEC_STATE_RUNNING);
    EXPECT_TRUE(primary(kBox).is_running());
    guests_.thaw(container());
    run_until([&] { return guests_.is_connected(container()); });
    end_exec("since-before", 5);
    wait_for_end("since-before");
    EXPECT_EQ(exec("since-before").exit_code(), 5);
  }

  void expect_started_again() {
    wait_inspected();
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_READY);
    EXPECT_EQ(exec("since-before").error_code(), "CONTAINER_EXITED");
    EXPECT_FALSE(primary(kBox).is_running()) << "not before the wait is over";
    ASSERT_TRUE(restarts().next().has_value());
    clock_.advance(*restarts().next() - clock_.boot_now());
    restarts().call_due();
    run_until([&] { return guests_.is_connected(container()); });
    ASSERT_TRUE(create_exec("after-1").has_value());
    wait_given("after-1");
  }

  void expect_failed(const std::string& code) {
    wait_inspected();
    ASSERT_EQ(state(kBox), v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle(kBox).error_code(), code);
    EXPECT_THAT(handle(kBox).error_message(), HasSubstr("delete the sandbox and create it again"));
    if (was_ready()) {
      EXPECT_EQ(exec("since-before").error_code(), "CONTAINER_EXITED");
    }
    if (!is("Missing")) {
      EXPECT_EQ(primary(kBox).is_running(), is("Foreign"));
    }
    EXPECT_FALSE(restarts().next().has_value());
  }

  void expect_still_stopped() {
    wait_inspected();
    EXPECT_EQ(state(kBox), v1::SANDBOX_STATE_STOPPED);
    EXPECT_EQ(event_types(kBox).back(), v1::SANDBOX_STOPPED);
    EXPECT_FALSE(restarts().next().has_value());
  }
};

TEST_P(FoundContainerTest, BecomesWhatTheTableSays) {
  if (was_ready()) {
    begin_exec("since-before");
    stop();
    take_directory();
    change_container();
    docker().forget_calls();
    start();
  } else {
    stop_by_the_next_daemon();
    docker().stop_listening();
    wait_for_loss_of_engine();
    change_container();
    docker().forget_calls();
    docker().listen();
  }
  switch (GetParam().then) {
    case 'a':
      return expect_adopted();
    case 'r':
      return expect_started_again();
    case '-':
      return expect_still_stopped();
    case 'C':
      return expect_failed("CONTAINER_NOT_RUNNING");
    case 'N':
      return expect_failed("NETWORK_MISSING");
    default:
      return expect_failed("GUEST_UNREACHABLE");
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FoundContainerTest, testing::ValuesIn(found_cases()),
                         [](const auto& info) {
                           const FoundCase& found = info.param;
                           return std::string(found.stored) + found.container +
                                  (found.has_network ? "" : "WithoutNetwork") +
                                  (found.has_directory ? "" : "WithoutDirectory");
                         });

}  // namespace
}  // namespace agbox
