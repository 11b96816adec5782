// SPDX-License-Identifier: Apache-2.0
// Ports of the host that sandboxes publish: each has one holder, and a request for a taken one
// is refused with its holder.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/failpoint.h"
#include "base/unique_fd.h"
#include "model/reasons.h"
#include "support/free_port.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

class PortsTest : public ControlTest {
 protected:
  PortsTest() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    number_ = bind_free_port(listener_.get(), address);
    start();
  }

  // The listener's, a port that no one else on this machine has.
  SandboxSpec publishing(v1::PortProtocol protocol = v1::PORT_PROTOCOL_TCP) {
    v1::CreateSpec wanted = spec().create_spec;
    v1::PortMapping& port = *wanted.add_ports();
    port.set_host_port(number_);
    port.set_container_port(80);
    port.set_protocol(protocol);
    return parse_create_spec(wanted).value();
  }
  void expect_taken_by(const std::string& holder, const auto& result) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().reason(), reason::kPortInUse);
    EXPECT_EQ(result.error().message(),
              "host_port " + std::to_string(number_) + "/tcp on 127.0.0.1 is in use by " + holder +
                  "; free it, or create the sandbox with another host_port");
  }
  // A container of somebody else that FakeDocker lets have the port, though no socket has it.
  void publish_by_hand() {
    fake::Container& other = engine().containers["f00d"];
    other.id = "f00d";
    other.name = "web";
    other.status = "running";
    const fake::json::object binding{{"HostIp", "127.0.0.1"},
                                     {"HostPort", std::to_string(number_)}};
    const fake::json::object bindings{{"80/tcp", fake::json::array{binding}}};
    other.spec = {{"HostConfig", fake::json::object{{"PortBindings", bindings}}}};
  }
  void remove_by_hand() { engine().containers.erase("f00d"); }
  void free_port() { listener_ = {}; }

  UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t number_ = 0;
};

TEST_F(PortsTest, AreAskedOfTheEngineAndShown) {
  free_port();
  create_ready("box-1", publishing());
  const auto& host = primary("box-1").spec.at("HostConfig").as_object();
  EXPECT_EQ(
      fake::json::serialize(host.at("PortBindings")),
      R"({"80/tcp":[{"HostIp":"127.0.0.1","HostPort":")" + std::to_string(number_) + R"("}]})");
  restart();
  ASSERT_EQ(handle("box-1").ports_size(), 1);
  EXPECT_EQ(handle("box-1").ports(0).host_port(), number_);
}

TEST_F(PortsTest, OneOfAProcessIsRefusedAndReservesNothing) {
  ::listen(listener_.get(), 1);
  const auto created = create("box-1", publishing());
  ASSERT_FALSE(created.has_value());
  EXPECT_EQ(created.error().reason(), reason::kPortInUse);
  EXPECT_THAT(created.error().message(), HasSubstr("/tcp on 127.0.0.1 is in use by "));
  EXPECT_THAT(listed(), IsEmpty());
  publish_by_hand();
  expect_taken_by("container web", create("box-1", publishing()));
  free_port();
  remove_by_hand();
  create_ready("box-1", publishing());
}

TEST_F(PortsTest, OneSandboxHasItUntilItStopsFailsOrIsDeleted) {
  free_port();
  create_ready("box-1", publishing());
  expect_taken_by("sandbox box-1", create("box-2", publishing()));
  EXPECT_EQ(create("box-1", publishing()).error().reason(), reason::kSandboxIdAlreadyExists);
  create_ready("other-1", publishing(v1::PORT_PROTOCOL_UDP));
  restart();
  expect_taken_by("sandbox box-1", create("box-2", publishing()));
  stop_sandbox("box-1");
  create_ready("box-2", publishing());
  expect_taken_by("sandbox box-2", ask_resume("box-1"));
  EXPECT_EQ(state("box-1"), v1::SANDBOX_STATE_STOPPED);
  ASSERT_TRUE(remove("box-2").has_value());
  wait_for_state("box-2", v1::SANDBOX_STATE_DELETED);
  resume_sandbox("box-1");
}

TEST_F(PortsTest, OneIsTakenWhileItsSandboxIsBeingAccepted) {
  free_port();
  hold_store();
  std::optional<Result<v1::SandboxHandle>> first;
  directory().create(publishing(), "box-1",
                     [&](Result<v1::SandboxHandle> r) { first = std::move(r); });
  expect_taken_by("sandbox box-1", create("box-2", publishing()));
  release_store();
  run_until([&] { return first.has_value(); });
  EXPECT_TRUE(first->has_value());
  wait_for_state("box-1", v1::SANDBOX_STATE_READY);
}

TEST_F(PortsTest, OneThatIsTakenBeforeTheStartFailsTheCreateAndLeavesNothing) {
  free_port();
  // The engine is asked for the image before anything else.
  ASSERT_TRUE(create("box-1", publishing()).has_value());
  publish_by_hand();
  wait_for_state("box-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle("box-1").error_code(), "PORT_IN_USE");
  EXPECT_THAT(handle("box-1").error_message(), HasSubstr("port is already allocated"));
  remove_by_hand();
  expect_nothing_left();
  EXPECT_FALSE(ask_resume("box-1").has_value()) << "it has no container";
}

TEST_F(PortsTest, OneThatIsTakenBeforeAResumeFailsItAndMayBeTriedAgain) {
  free_port();
  create_ready("box-1", publishing());
  stop_sandbox("box-1");
  publish_by_hand();
  ASSERT_TRUE(ask_resume("box-1").has_value());
  wait_for_state("box-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_EQ(handle("box-1").error_code(), "PORT_IN_USE");
  restart();
  remove_by_hand();
  ASSERT_TRUE(ask_resume("box-1").has_value());
  wait_for_state("box-1", v1::SANDBOX_STATE_READY);
}

TEST_F(PortsTest, ADaemonThatEndsWhileItLooksForTheHolderIsFollowedByOneThatKnowsIt) {
  free_port();
  create_ready("box-1", publishing());
  for (const std::string point : {"ports.holder.before", "ports.holder.after"}) {
    stop_sandbox("box-1");
    publish_by_hand();
    ASSERT_TRUE(failpoint::arm(point + "=hold"));
    ASSERT_TRUE(ask_resume("box-1").has_value());
    wait_held_at(point);
    crash();
    disarm();
    start();
    wait_for_state("box-1", v1::SANDBOX_STATE_FAILED);
    EXPECT_EQ(handle("box-1").error_code(), "PORT_IN_USE") << point;
    remove_by_hand();
    ASSERT_TRUE(ask_resume("box-1").has_value());
    wait_for_state("box-1", v1::SANDBOX_STATE_READY);
  }
}

TEST_F(PortsTest, OneThatIsTakenBeforeARestartIsWaitedFor) {
  free_port();
  create_ready("box-1", publishing());
  publish_by_hand();
  engine().end_container(*engine().find_container(primary("box-1").name), 1);
  run_until([&] { return restarts().next().has_value(); });
  clock_.advance(1min);
  restarts().call_due();
  run_until([&] { return restarts().next().has_value(); });
  EXPECT_EQ(state("box-1"), v1::SANDBOX_STATE_READY);
  remove_by_hand();
  clock_.advance(1min);
  restarts().call_due();
  run_until([&] { return handle("box-1").restart_count() == 1; });
  EXPECT_TRUE(primary("box-1").is_running());
}

}  // namespace
}  // namespace agbox
