// SPDX-License-Identifier: Apache-2.0
// What the engine client relies on, shown on FakeDocker and on real engines alike: every call with
// its success, and with "not found" and "conflict" where the engine has them. A test is named
// <call>_<outcome>; scripts/check-engine-contract compares these names with src/engine/docker.
//
// FakeDocker always takes part. A real engine does where the environment names it:
//   AGBOX_ENGINE_SOCKET      its Unix socket
//   AGBOX_ENGINE_IMAGE       an image that it has, with sh, cat and sleep (agbox-contract:latest)
//   AGBOX_ENGINE_PULL_IMAGE  an image that it can pull; without one the test of pulls is skipped
//   AGBOX_ENGINE_SUBNET      three numbers of a /24 that is free on it (10.221.99)
// An engine that product rules would refuse is tested all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/this_coro.hpp>
#include <cstdlib>
#include <memory>

#include "base/uuid.h"
#include "engine/docker/api/engine_client.h"
#include "engine/docker/api/event_watch.h"
#include "engine/docker/api/line_splitter.h"
#include "engine/docker/api/log_frames.h"
#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::_;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// Which engines take part: the fake, and the socket of a real one.
std::vector<std::string> engines() {
  std::vector<std::string> all{"fake"};
  if (const std::string socket = variable("AGBOX_ENGINE_SOCKET"); !socket.empty()) {
    all.push_back(socket);
  }
  return all;
}

std::string engine_name(const testing::TestParamInfo<std::string>& engine) {
  return engine.param == "fake" ? "Fake" : "Real";
}

class EngineContract : public testing::TestWithParam<std::string> {
 protected:
  EngineContract() {
    options_.judge = [](const EngineIdentity&) { return Result<>(); };
    if (is_fake()) {
      fake_ = std::make_unique<FakeDocker>(loop_.io());
      fake_->engine().add_image(image_, {{"Cmd", {"/bin/sleep", "1000"}}});
      fake_->engine().registry["docker.io/library/pullable:latest"] = {
          .lines = {R"({"status":"Pulling from library/pullable","id":"latest"})",
                    R"({"status":"Pull complete","progressDetail":{},"id":"0123456789ab"})"}};
      fake_->engine().on_start = [this](fake::Container& container) {
        const bool stays = fake::json::serialize(container.spec.at("Cmd")).contains("sleep");
        if (!stays) fake_->engine().end_container(container, 0);
      };
      options_.socket_path = fake_->socket_path();
    }
    client_ = std::make_unique<EngineClient>(loop_.executor(), options_);
  }

  void TearDown() override {
    EXPECT_TRUE(loop_.run(client_->remove_containers_of(owner_)));
    EXPECT_TRUE(loop_.run(client_->remove_networks_of(owner_)));
  }

  bool is_fake() const { return GetParam() == "fake"; }

  template <class T>
  EngineResult<T> run(EngineAwaitable<T> call) {
    return loop_.run(std::move(call));
  }
  template <class T>
  T must(EngineAwaitable<T> call) {
    EngineResult<T> result = loop_.run(std::move(call));
    if (!result) throw std::runtime_error(result.error().message());
    if constexpr (!std::is_void_v<T>) return std::move(*result);
  }

  template <class T>
  static void expect_kind(const EngineResult<T>& result, EngineErrorKind kind,
                          const std::string& words) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), kind) << result.error().message();
    EXPECT_THAT(result.error().message(), HasSubstr("Error response from daemon: "));
    EXPECT_THAT(result.error().message(), HasSubstr(words));
  }

  ContainerSpec spec(const std::string& what) {
    return {
        .name = name(what),
        .image = image_,
        .labels = owner_.labels(),
        .command = std::vector<std::string>{"sh", "-c", "echo out; echo err >&2; exec sleep 1000"}};
  }
  NetworkSpec network_spec(const std::string& what, int part) {
    return {.name = name(what),
            .labels = owner_.labels(),
            .bridge_name = "dkc" + owner_.instance.substr(0, 8) + what.substr(0, 3),
            .subnet = subnet_ + "." + std::to_string(part * 16) + "/28",
            .gateway = subnet_ + "." + std::to_string(part * 16 + 1)};
  }
  std::string name(const std::string& what) const {
    return "dkc-" + owner_.instance.substr(0, 8) + "-" + what;
  }
  std::string running(const std::string& what) {
    const std::string id = must(client_->create_container(spec(what)));
    must(client_->start_container(id));
    return id;
  }

  // As one piece, whatever its outputs.
  LogPiece whole_log(const std::string& id, LogQuery query) {
    EngineStream stream = must(client_->open_log(id, query, {.deadline = 30s}));
    LogFrames frames(query.after);
    LogPiece all;
    while (true) {
      const std::string bytes = must(stream.read_some());
      if (bytes.empty()) return all;
      for (const LogPiece& piece : frames.feed(bytes).value()) {
        all = {.stream = piece.stream, .data = all.data + piece.data, .end = piece.end};
      }
    }
  }

  // A line of any length comes in parts of one time, which a position distinguishes.
  void check_log_of_a_long_line() {
    ContainerSpec printing = spec("long");
    printing.command = std::vector<std::string>{
        "sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end >&2"};
    printing.log_driver = "local";
    const std::string id = must(client_->create_container(printing));
    must(client_->start_container(id));
    must(client_->wait_until_ended(id));
    if (is_fake()) {
      fake::Container& container = *fake_->engine().find_container(id);
      fake_->engine().print(container, std::string(16384, 'x'));
      for (int i = 0; i < 6; ++i) {
        container.log.push_back(container.log.front());
        container.log.back().text.resize(i < 5 ? 16384 : 100000 - 6 * 16384);
      }
      container.log.back().text += "\n";
      fake_->engine().print(container, "end\n", 2);
    }
    const LogPiece line = whole_log(id, {.with_stderr = false});
    // Docker 20.10 loses the line feed of a line that it splits.
    const std::string whole(100000, 'x');
    ASSERT_TRUE(line.data == whole + "\n" || line.data == whole) << line.data.size() << " bytes";
    EXPECT_EQ(whole_log(id, {.with_stdout = false}).data, "end\n");
    const LogPosition middle{.time = line.end.time, .bytes = 40000};
    EXPECT_EQ(whole_log(id, {.with_stderr = false, .after = middle}).data.size(),
              line.data.size() - 40000);
  }

  // The head of the answer comes before anything is printed, lines come as they are printed, and
  // the stream ends with the container.
  void check_log_of_a_running_container() {
    ContainerSpec printing = spec("follow");
    printing.command = std::vector<std::string>{
        "sh", "-c", "until [ -e /go ]; do sleep 0.1; done; echo now; exec sleep 1000"};
    printing.log_driver = "local";
    const std::string id = must(client_->create_container(printing));
    must(client_->start_container(id));
    EngineStream stream = must(client_->open_log(id, {.follow = true}, {.deadline = 30s}));
    LogFrames frames;
    if (is_fake()) {
      fake_->engine().print(*fake_->engine().find_container(id), "now\n");
    } else {
      must(client_->run_process(id, {"touch", "/go"}, 30s));
    }
    std::string printed;
    while (printed != "now\n") {
      const std::string bytes = must(stream.read_some());
      ASSERT_NE(bytes, "");
      for (const LogPiece& piece : *frames.feed(bytes)) printed += piece.data;
    }
    must(client_->stop_container(id, 0s));
    EXPECT_EQ(must(stream.read_some()), "");
  }

  TestLoop loop_;
  std::string image_ = variable("AGBOX_ENGINE_IMAGE", "agbox-contract:latest");
  std::string subnet_ = variable("AGBOX_ENGINE_SUBNET", "10.221.99");
  ObjectOwner owner_{.instance = random_uuid(), .sandbox_id = "contract"};
  EngineOptions options_{.socket_path = GetParam()};
  std::unique_ptr<FakeDocker> fake_;
  std::unique_ptr<EngineClient> client_;
};

INSTANTIATE_TEST_SUITE_P(Engines, EngineContract, testing::ValuesIn(engines()), engine_name);

TEST_P(EngineContract, Ping_Succeeds) {
  EXPECT_TRUE(run(client_->ping()));
}

TEST_P(EngineContract, Version_Succeeds) {
  const EngineIdentity engine = must(client_->identify());
  EXPECT_THAT(engine.version, Not(IsEmpty()));
  EXPECT_GE(engine.api, kOldestApi);
  EXPECT_LE(engine.api, kNewestApi);
}

TEST_P(EngineContract, Info_Succeeds) {
  const EngineIdentity first = must(client_->identify());
  const EngineIdentity second = must(client_->engine());
  EXPECT_THAT(first.id, Not(IsEmpty()));
  EXPECT_EQ(first.id, second.id);
  EXPECT_EQ(first.os_type, "linux");
  EXPECT_TRUE(first.has_seccomp);
}

TEST_P(EngineContract, ImageInspect_Succeeds) {
  const ImageSeen image = must(client_->inspect_image(image_));
  EXPECT_THAT(image.id, HasSubstr("sha256:"));
  EXPECT_EQ(must(client_->inspect_image(image.id)).id, image.id);
}

TEST_P(EngineContract, ImageInspect_NotFound) {
  expect_kind(run(client_->inspect_image("agbox-none:1")), EngineErrorKind::NotFound,
              "agbox-none:1");
}

TEST_P(EngineContract, ImagePull_Succeeds) {
  const std::string name = is_fake() ? "pullable" : variable("AGBOX_ENGINE_PULL_IMAGE");
  if (name.empty()) GTEST_SKIP() << "AGBOX_ENGINE_PULL_IMAGE is not set";
  const ImageReference image = *parse_image_reference(name);
  must(client_->pull_image(image, {}));
  EXPECT_THAT(must(client_->inspect_image(name)).id, HasSubstr("sha256:"));
}

TEST_P(EngineContract, ImagePull_NotFound) {
  const std::string known = is_fake() ? "pullable" : variable("AGBOX_ENGINE_PULL_IMAGE");
  if (known.empty()) GTEST_SKIP() << "AGBOX_ENGINE_PULL_IMAGE is not set";
  ImageReference image = *parse_image_reference(known);
  image.repository += "-none";
  expect_kind(run(client_->pull_image(image, {})), EngineErrorKind::NotFound, "");
}

TEST_P(EngineContract, NetworkCreate_Succeeds) {
  const NetworkSpec asked = network_spec("net", 0);
  const std::string id = must(client_->create_network(asked));
  const NetworkSeen network = must(client_->inspect_network(id));
  EXPECT_EQ(network.id, id);
  EXPECT_EQ(network.name, asked.name);
  EXPECT_EQ(network.bridge_name, asked.bridge_name);
  EXPECT_THAT(network.subnets, ElementsAre(asked.subnet));
  EXPECT_EQ(network.labels, asked.labels);
  // The daemon does not read the gateway, but clients of the engine do.
  EngineTransport transport(loop_.executor(), options_);
  const std::string body =
      must(transport.call({.call = EngineCall::NetworkInspect, .object = id}, {}));
  const fake::json::value answer = fake::json::parse(body);
  EXPECT_EQ(fake::json::value_to<std::string>(answer.at_pointer("/IPAM/Config/0/Gateway")),
            asked.gateway);
}

TEST_P(EngineContract, NetworkCreate_Conflict) {
  const NetworkSpec first = network_spec("net", 0);
  must(client_->create_network(first));
  NetworkSpec same_name = network_spec("two", 1);
  same_name.name = first.name;
  expect_kind(run(client_->create_network(same_name)), EngineErrorKind::Conflict, "already exists");
  NetworkSpec same_subnet = network_spec("two", 0);
  expect_kind(run(client_->create_network(same_subnet)), EngineErrorKind::Conflict, "overlap");
  NetworkSpec same_bridge = network_spec("two", 1);
  same_bridge.bridge_name = first.bridge_name;
  expect_kind(run(client_->create_network(same_bridge)), EngineErrorKind::Conflict,
              "networks have same bridge name");
}

TEST_P(EngineContract, NetworkInspect_Succeeds) {
  const NetworkSpec asked = network_spec("net", 0);
  must(client_->create_network(asked));
  ContainerSpec member = spec("member");
  member.network = asked.name;
  const std::string container = must(client_->create_container(member));
  must(client_->start_container(container));
  EXPECT_THAT(must(client_->inspect_network(asked.name)).members, ElementsAre(Pair(container, _)));
  const ContainerSeen seen = must(client_->inspect_container(container));
  EXPECT_THAT(seen.networks, ElementsAre(Pair(asked.name, subnet_ + ".2")));
}

TEST_P(EngineContract, NetworkInspect_NotFound) {
  expect_kind(run(client_->inspect_network("agbox-none")), EngineErrorKind::NotFound,
              "network agbox-none not found");
}

TEST_P(EngineContract, NetworkList_Succeeds) {
  const std::string id = must(client_->create_network(network_spec("net", 0)));
  NetworkSpec other = network_spec("two", 1);
  other.labels[sandbox_label()] = "another";
  must(client_->create_network(other));
  const auto found = must(client_->list_networks(owner_.labels()));
  EXPECT_THAT(found, ElementsAre(Field(&NetworkSeen::id, id)));
  EXPECT_EQ(must(client_->list_networks({{instance_label(), owner_.instance}})).size(), 2U);
  must(client_->remove_networks_of({.instance = owner_.instance}));
}

TEST_P(EngineContract, NetworkDisconnect_Succeeds) {
  const NetworkSpec asked = network_spec("net", 0);
  must(client_->create_network(asked));
  ContainerSpec member = spec("member");
  member.network = asked.name;
  const std::string id = must(client_->create_container(member));
  must(client_->start_container(id));
  must(client_->disconnect_network(asked.name, id));
  EXPECT_THAT(must(client_->inspect_network(asked.name)).members, IsEmpty());
  EXPECT_EQ(must(client_->inspect_container(id)).status, "running");
  must(client_->remove_network(asked.name));
}

TEST_P(EngineContract, NetworkDisconnect_NotFound) {
  expect_kind(run(client_->disconnect_network("agbox-none", running("one"))),
              EngineErrorKind::NotFound, "network agbox-none not found");
  const NetworkSpec asked = network_spec("net", 0);
  must(client_->create_network(asked));
  expect_kind(run(client_->disconnect_network(asked.name, "agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, NetworkDisconnect_Refused) {
  const NetworkSpec asked = network_spec("net", 0);
  must(client_->create_network(asked));
  expect_kind(run(client_->disconnect_network(asked.name, running("one"))),
              EngineErrorKind::Refused, "is not connected to network");
}

TEST_P(EngineContract, NetworkRemove_Succeeds) {
  const std::string id = must(client_->create_network(network_spec("net", 0)));
  must(client_->remove_network(id));
  EXPECT_EQ(run(client_->inspect_network(id)).error().kind(), EngineErrorKind::NotFound);
}

TEST_P(EngineContract, NetworkRemove_NotFound) {
  expect_kind(run(client_->remove_network("agbox-none")), EngineErrorKind::NotFound,
              "network agbox-none not found");
}

TEST_P(EngineContract, NetworkRemove_Conflict) {
  const NetworkSpec asked = network_spec("net", 0);
  const std::string id = must(client_->create_network(asked));
  ContainerSpec member = spec("member");
  member.network = asked.name;
  must(client_->start_container(must(client_->create_container(member))));
  expect_kind(run(client_->remove_network(id)), EngineErrorKind::Conflict, "has active endpoints");
}

TEST_P(EngineContract, ContainerCreate_Succeeds) {
  ContainerSpec asked = spec("all");
  asked.env = {"A=1", "B=two words"};
  asked.user = "0:0";
  asked.working_dir = "/tmp";
  asked.health_check = HealthCheck{.test = {"NONE"}};
  asked.stop_signal = "SIGTERM";
  asked.mounts = {{.source = "/tmp", .target = "/mnt/ro"},
                  {.source = "/tmp", .target = "/mnt/rw", .is_writable = true}};
  asked.network = "none";
  asked.capabilities_dropped = {"ALL"};
  asked.capabilities_added = {"CHOWN", "KILL"};
  asked.seccomp_profile = R"({"defaultAction":"SCMP_ACT_ALLOW"})";
  asked.sysctls = {{"net.ipv6.conf.all.disable_ipv6", "1"}};
  asked.ipc_mode = "private";
  asked.nano_cpus = 500'000'000;
  asked.memory_bytes = 64 << 20;
  asked.pids_limit = 128;
  asked.ulimits = {{.name = "core", .soft = 0, .hard = 0}};
  asked.log_driver = "local";
  asked.log_options = {{"max-size", "10m"}, {"max-file", "3"}};
  asked.extra_hosts = {"one:10.1.2.3"};
  asked.dns = {"192.0.2.53"};
  asked.has_init = true;
  const std::string id = must(client_->create_container(asked));
  must(client_->start_container(id));
  const ContainerSeen seen = must(client_->inspect_container(asked.name));
  EXPECT_EQ(seen.id, id);
  EXPECT_TRUE(seen.is_up());
  EXPECT_EQ(seen.labels, asked.labels);
}

TEST_P(EngineContract, ContainerCreate_NotFound) {
  ContainerSpec asked = spec("one");
  asked.image = "agbox-none:1";
  expect_kind(run(client_->create_container(asked)), EngineErrorKind::NotFound, "agbox-none:1");
}

TEST_P(EngineContract, ContainerCreate_Conflict) {
  const std::string id = must(client_->create_container(spec("one")));
  expect_kind(run(client_->create_container(spec("one"))), EngineErrorKind::Conflict, id);
}

TEST_P(EngineContract, ContainerCreate_Refused) {
  ContainerSpec asked = spec("one");
  asked.mounts = {{.source = "/nonexistent-agbox", .target = "/mnt"}};
  expect_kind(run(client_->create_container(asked)), EngineErrorKind::Refused,
              "bind source path does not exist: /nonexistent-agbox");
}

TEST_P(EngineContract, ContainerInspect_Succeeds) {
  const std::string id = must(client_->create_container(spec("one")));
  ContainerSeen seen = must(client_->inspect_container(id));
  EXPECT_EQ(seen.name, name("one"));
  EXPECT_EQ(seen.status, "created");
  EXPECT_FALSE(seen.is_running);
  EXPECT_FALSE(seen.started_at);
  must(client_->start_container(id));
  seen = must(client_->inspect_container(id.substr(0, 12)));
  EXPECT_EQ(seen.status, "running");
  EXPECT_TRUE(seen.is_up());
  EXPECT_TRUE(seen.started_at);
}

TEST_P(EngineContract, ContainerInspect_NotFound) {
  expect_kind(run(client_->inspect_container("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerList_Succeeds) {
  const std::string id = must(client_->create_container(spec("one")));
  ContainerSpec other = spec("two");
  other.labels[sandbox_label()] = "another";
  must(client_->create_container(other));
  const auto found = must(client_->list_containers(owner_.labels()));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, id);
  EXPECT_EQ(found[0].name, name("one"));
  EXPECT_EQ(found[0].status, "created");
  EXPECT_EQ(found[0].labels, owner_.labels());
  must(client_->remove_containers_of({.instance = owner_.instance}));
}

TEST_P(EngineContract, ContainerStart_Succeeds) {
  const std::string id = running("one");
  EXPECT_TRUE(run(client_->start_container(id))) << "a second time is no error";
}

TEST_P(EngineContract, ContainerStart_NotFound) {
  expect_kind(run(client_->start_container("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerStart_Refused) {
  const auto publishing = [this](const std::string& what) {
    ContainerSpec wanted = spec(what);
    wanted.network = "bridge";
    wanted.ports = {
        {.container_port = "80/tcp", .host_address = "127.0.0.1", .host_port = "18871"}};
    return wanted;
  };
  const std::string first = must(client_->create_container(publishing("one")));
  const std::string second = must(client_->create_container(publishing("two")));
  must(client_->start_container(first));
  expect_kind(run(client_->start_container(second)), EngineErrorKind::PortInUse,
              "port is already allocated");
  for (const ContainerListed& listed : must(client_->list_containers(owner_.labels()))) {
    if (listed.id == second) EXPECT_THAT(listed.ports, IsEmpty());
    if (listed.id != first) continue;
    ASSERT_EQ(listed.ports.size(), 1U);
    EXPECT_EQ(listed.ports[0].host_address, "127.0.0.1");
    EXPECT_EQ(listed.ports[0].host_port, 18871);
    EXPECT_EQ(listed.ports[0].protocol, "tcp");
  }
  must(client_->stop_container(first, 0s));
  must(client_->start_container(second));
}

TEST_P(EngineContract, ContainerStop_Succeeds) {
  const std::string id = running("one");
  must(client_->stop_container(id, 0s));
  const ContainerSeen seen = must(client_->inspect_container(id));
  EXPECT_EQ(seen.status, "exited");
  EXPECT_FALSE(seen.is_running);
  EXPECT_EQ(seen.exit_code, 137);
  EXPECT_TRUE(run(client_->stop_container(id, 0s))) << "a second time is no error";
}

TEST_P(EngineContract, ContainerStop_NotFound) {
  expect_kind(run(client_->stop_container("agbox-none", 0s)), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerKill_Succeeds) {
  const std::string id = running("one");
  must(client_->pause_container(id));
  must(client_->kill_container(id));
  const ContainerSeen seen = must(client_->inspect_container(id));
  EXPECT_EQ(seen.status, "exited");
  EXPECT_EQ(seen.exit_code, 137);
  EXPECT_FALSE(seen.is_paused);
}

TEST_P(EngineContract, ContainerKill_NotFound) {
  expect_kind(run(client_->kill_container("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerKill_Conflict) {
  const std::string id = must(client_->create_container(spec("one")));
  expect_kind(run(client_->kill_container(id)), EngineErrorKind::Conflict, "is not running");
}

TEST_P(EngineContract, ContainerPause_Succeeds) {
  const std::string id = running("one");
  must(client_->pause_container(id));
  ContainerSeen seen = must(client_->inspect_container(id));
  EXPECT_EQ(seen.status, "paused");
  EXPECT_TRUE(seen.is_paused);
  EXPECT_TRUE(seen.is_up());
  EXPECT_EQ(must(client_->list_containers(owner_.labels()))[0].status, "paused");
  EXPECT_TRUE(run(client_->pause_container(id))) << "a second time is no error";
  must(client_->stop_container(id, 0s));
  seen = must(client_->inspect_container(id));
  EXPECT_EQ(seen.status, "exited");
  EXPECT_FALSE(seen.is_paused);
  must(client_->start_container(id));
  EXPECT_EQ(must(client_->inspect_container(id)).status, "running");
  must(client_->pause_container(id));
  must(client_->remove_container(id, {.force = true, .with_volumes = true}));
  EXPECT_EQ(run(client_->inspect_container(id)).error().kind(), EngineErrorKind::NotFound);
}

TEST_P(EngineContract, ContainerPause_NotFound) {
  expect_kind(run(client_->pause_container("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerPause_Conflict) {
  const std::string id = must(client_->create_container(spec("one")));
  expect_kind(run(client_->pause_container(id)), EngineErrorKind::Conflict, "is not running");
}

TEST_P(EngineContract, ContainerUnpause_Succeeds) {
  const std::string id = running("one");
  const auto started_at = must(client_->inspect_container(id)).started_at;
  must(client_->pause_container(id));
  must(client_->unpause_container(id));
  const ContainerSeen seen = must(client_->inspect_container(id));
  EXPECT_EQ(seen.status, "running");
  EXPECT_EQ(seen.started_at, started_at);
  EXPECT_TRUE(run(client_->unpause_container(id))) << "a second time is no error";
  must(client_->stop_container(id, 0s));
  EXPECT_TRUE(run(client_->unpause_container(id))) << "what does not run is not paused";
}

TEST_P(EngineContract, ContainerUnpause_NotFound) {
  expect_kind(run(client_->unpause_container("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerWait_Succeeds) {
  const std::string id = running("one");
  auto removal = loop_.spawn(client_->wait_until_removed(id));
  must(client_->stop_container(id, 0s));
  EXPECT_FALSE(removal.is_done());
  must(client_->remove_container(id, {}));
  loop_.run_until([&] { return removal.is_done(); });
  EXPECT_TRUE(removal.result());
}

TEST_P(EngineContract, ContainerWait_NotFound) {
  expect_kind(run(client_->wait_until_removed("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerPathStat_Succeeds) {
  ContainerSpec leaving = spec("stat");
  leaving.command = std::vector<std::string>{
      "sh", "-c",
      "mkdir /d; echo 12345 > /d/file; mkfifo /d/fifo; ln -s fifo /d/link; ln -s /d /dl"};
  const std::string id = must(client_->create_container(leaving));
  must(client_->start_container(id));
  must(client_->wait_until_ended(id));
  if (is_fake()) {
    fake_->engine().find_container(id)->files = {
        {"/d", {.mode = fake::kDirectoryMode}},
        {"/d/file", {.size = 6}},
        {"/d/fifo", {.mode = fake::kFifoMode}},
        {"/d/link", {.mode = fake::kLinkMode, .link_target = "/d/fifo"}},
        {"/dl", {.mode = fake::kLinkMode, .link_target = "/d"}},
        {"/dl/link", {.mode = fake::kLinkMode, .link_target = "/d/fifo"}}};
  }
  using Type = FileSeen::Type;
  const auto type_at = [&](const char* path) { return must(client_->stat_path(id, path)).type; };
  EXPECT_EQ(type_at("/d"), Type::Directory);
  EXPECT_EQ(type_at("/d/file"), Type::File);
  EXPECT_EQ(must(client_->stat_path(id, "/d/file")).bytes, 6);
  EXPECT_EQ(type_at("/d/fifo"), Type::Fifo) << "it is not opened";
  EXPECT_EQ(type_at("/dl"), Type::Link);
  // Links of directories are followed, the last one is not, and its target is resolved.
  EXPECT_EQ(type_at("/dl/link"), Type::Link);
  EXPECT_EQ(must(client_->stat_path(id, "/dl/link")).link_target, "/d/fifo");
  EXPECT_EQ(must(client_->stat_path(id, "/dl")).link_target, "/d");
}

TEST_P(EngineContract, ContainerPathStat_NotFound) {
  const auto gone = run(client_->stat_path("no-such-container", "/etc"));
  EXPECT_EQ(gone.error().kind(), EngineErrorKind::NotFound);
  const std::string id = must(client_->create_container(spec("stat")));
  const auto missing = run(client_->stat_path(id, "/no-such-file"));
  EXPECT_EQ(missing.error().kind(), EngineErrorKind::NotFound);
  EXPECT_TRUE(run(client_->ping())) << "the connection is still in step";
}

TEST_P(EngineContract, ContainerLogs_Succeeds) {
  ContainerSpec printing = spec("logs");
  printing.command = std::vector<std::string>{
      "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done"};
  printing.log_driver = "local";
  const std::string id = must(client_->create_container(printing));
  EXPECT_EQ(must(client_->read_output(id, 3)), "") << "it has not run yet";
  must(client_->start_container(id));
  must(client_->wait_until_ended(id));
  if (is_fake()) {
    for (int i = 1; i <= 12; ++i) {
      fake_->engine().print(*fake_->engine().find_container(id),
                            "line " + std::to_string(i) + "\n");
    }
  }
  EXPECT_EQ(must(client_->read_output(id, 3)), "line 10\\nline 11\\nline 12");
  // All of it with times, one output alone, and what comes after a position in it.
  const LogPiece all = whole_log(id, {});
  EXPECT_THAT(all.data, testing::AllOf(testing::StartsWith("line 1\nline 2\n"),
                                       testing::EndsWith("line 11\nline 12\n")));
  EXPECT_EQ(whole_log(id, {.with_stdout = false}).data, "");
  EXPECT_EQ(whole_log(id, {.follow = true}).data, all.data) << "it does not run: the log ends";
  EXPECT_EQ(whole_log(id, {.tail = 1}).data, "line 12\n");
  EXPECT_EQ(whole_log(id, {.tail = 0}).data, "");
  EXPECT_EQ(whole_log(id, {.since = all.end.time}).data, "line 12\n");
  EXPECT_EQ(whole_log(id, {.after = all.end}).data, "");
  EXPECT_EQ(whole_log(id, {.after = LogPosition{.time = all.end.time, .bytes = 5}}).data, "12\n");
  check_log_of_a_long_line();
  check_log_of_a_running_container();
  EXPECT_TRUE(run(client_->ping())) << "the connection is still in step";
}

TEST_P(EngineContract, ContainerLogs_NotFound) {
  expect_kind(run(client_->open_log("agbox-none", {})), EngineErrorKind::NotFound,
              "No such container: agbox-none");
  expect_kind(run(client_->read_output("agbox-none", 3)), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerStats_Succeeds) {
  const std::string id = running("stats");
  if (is_fake()) {
    fake_->engine().find_container(id)->usage = fake::json::object{
        {"cpu_stats", {{"cpu_usage", {{"total_usage", 5'000'000}}}}},
        {"memory_stats", {{"usage", 4096}, {"limit", 8192}, {"stats", {{"inactive_file", 1024}}}}},
        {"pids_stats", {{"current", 1}}}};
  }
  const ContainerUsage usage = must(client_->measure_container(id));
  EXPECT_TRUE(usage.is_running);
  EXPECT_GT(usage.cpu_time, 0ns);
  EXPECT_GT(usage.memory_bytes, 0U);
  EXPECT_GT(usage.memory_limit_bytes, usage.memory_bytes);
  EXPECT_EQ(usage.pids, 1U);
  must(client_->stop_container(id, 0s));
  EXPECT_EQ(must(client_->measure_container(id)), ContainerUsage());
}

TEST_P(EngineContract, ContainerStats_NotFound) {
  expect_kind(run(client_->measure_container("agbox-none")), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ExecCreate_Succeeds) {
  const std::string id = running("one");
  const std::string exec = must(client_->create_exec(id, {"sh", "-c", "exit 0"}));
  EXPECT_THAT(exec, Not(IsEmpty()));
  EXPECT_NE(must(client_->create_exec(id, {"sh", "-c", "exit 0"})), exec);
}

TEST_P(EngineContract, ExecCreate_NotFound) {
  expect_kind(run(client_->create_exec("agbox-none", {"sh"})), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ExecCreate_Conflict) {
  const std::string id = must(client_->create_container(spec("one")));
  expect_kind(run(client_->create_exec(id, {"sh"})), EngineErrorKind::Conflict, "is not running");
  must(client_->start_container(id));
  must(client_->pause_container(id));
  expect_kind(run(client_->create_exec(id, {"sh"})), EngineErrorKind::Conflict, "is paused");
}

TEST_P(EngineContract, ExecStart_Succeeds) {
  const std::string id = running("one");
  if (is_fake()) {
    fake_->engine().find_container(id)->exec_answer = {
        .exit_code = 7, .output = "out\n", .errors = "err\n"};
  }
  const std::string exec =
      must(client_->create_exec(id, {"sh", "-c", "echo out; echo err >&2; exit 7"}));
  const std::string output = must(client_->run_exec(exec, {.deadline = 30s}));
  // Of two streams, in either order.
  EXPECT_THAT(output, testing::AnyOf("out\\nerr", "err\\nout"));
  EXPECT_TRUE(run(client_->ping()));
}

TEST_P(EngineContract, ExecStart_NotFound) {
  expect_kind(run(client_->run_exec("0123456789abcdef", {.deadline = 30s})),
              EngineErrorKind::NotFound, "No such exec instance: 0123456789abcdef");
  const std::string id = running("one");
  const std::string late = must(client_->create_exec(id, {"sh", "-c", "exit 0"}));
  must(client_->stop_container(id, 0s));
  expect_kind(run(client_->run_exec(late, {.deadline = 30s})), EngineErrorKind::NotFound,
              "No such exec instance: " + late);
}

TEST_P(EngineContract, ExecStart_Conflict) {
  const std::string id = running("one");
  const std::string late = must(client_->create_exec(id, {"sh", "-c", "exit 0"}));
  must(client_->pause_container(id));
  expect_kind(run(client_->run_exec(late, {.deadline = 30s})), EngineErrorKind::Conflict,
              "is paused");
}

TEST_P(EngineContract, ExecInspect_Succeeds) {
  const std::string id = running("one");
  if (is_fake()) fake_->engine().find_container(id)->exec_answer = {.exit_code = 7};
  const std::string exec = must(client_->create_exec(id, {"sh", "-c", "exit 7"}));
  const ExecSeen before = must(client_->inspect_exec(exec));
  EXPECT_FALSE(before.is_running);
  EXPECT_EQ(before.exit_code, std::nullopt);
  EXPECT_EQ(must(client_->run_process(id, {"sh", "-c", "exit 7"}, 30s)).exit_code, 7);
}

TEST_P(EngineContract, ExecInspect_NotFound) {
  expect_kind(run(client_->inspect_exec("0123456789abcdef")), EngineErrorKind::NotFound,
              "No such exec instance: 0123456789abcdef");
}

TEST_P(EngineContract, ContainerRemove_Succeeds) {
  const std::string id = running("one");
  must(client_->remove_container(id, {.force = true, .with_volumes = true}));
  EXPECT_EQ(run(client_->inspect_container(id)).error().kind(), EngineErrorKind::NotFound);
}

TEST_P(EngineContract, ContainerRemove_NotFound) {
  expect_kind(run(client_->remove_container("agbox-none", {})), EngineErrorKind::NotFound,
              "No such container: agbox-none");
}

TEST_P(EngineContract, ContainerRemove_Conflict) {
  const std::string id = running("one");
  expect_kind(run(client_->remove_container(id, {})), EngineErrorKind::Conflict, id);
}

TEST_P(EngineContract, Events_Succeeds) {
  EngineStream stream = must(
      client_->open_events({.labels = {{instance_label(), owner_.instance}, {sandbox_label(), ""}},
                            .types = {"container"},
                            .actions = {"die", "start"}}));
  ContainerSpec foreign = spec("foreign");
  foreign.labels = {{instance_label(), "another"}, {sandbox_label(), "contract"}};
  const std::string foreign_id = must(client_->create_container(foreign));
  must(client_->start_container(foreign_id));
  const std::string id = running("one");
  must(client_->stop_container(id, 0s));
  must(client_->remove_container(foreign_id, {.force = true}));

  LineSplitter lines;
  std::vector<EngineEvent> events;
  while (events.size() < 2) {
    const EngineResult<std::string> piece = run(stream.read_some());
    ASSERT_TRUE(piece && !piece->empty());
    for (const std::string& line : *lines.feed(*piece)) events.push_back(*read_event(line));
  }
  EXPECT_EQ(events[0].action, "start");
  EXPECT_EQ(events[0].object_id, id);
  EXPECT_EQ(events[1].action, "die");
  EXPECT_EQ(events[1].type, "container");
  EXPECT_THAT(events[1].attributes, Contains(Pair("exitCode", "137")));
  EXPECT_THAT(events[1].attributes, Contains(Pair("name", name("one"))));
  EXPECT_THAT(events[1].attributes, Contains(Pair(sandbox_label(), "contract")));
}

// What is built of these calls, on the same engines.
class OwnedObjects : public EngineContract {};
INSTANTIATE_TEST_SUITE_P(Engines, OwnedObjects, testing::ValuesIn(engines()), engine_name);

TEST_P(OwnedObjects, EnsuringTwiceGivesTheSame) {
  NetworkSpec network = network_spec("net", 0);
  network.labels.clear();
  const NetworkSeen first = must(client_->ensure_network(owner_, network));
  EXPECT_EQ(first.subnets, std::vector{network.subnet});
  EXPECT_EQ(must(client_->ensure_network(owner_, network)).id, first.id);
  ContainerSpec container = spec("one");
  container.labels.clear();
  const std::string id = must(client_->ensure_container(owner_, container));
  EXPECT_EQ(must(client_->ensure_container(owner_, container)), id);
  EXPECT_EQ(must(client_->inspect_container(id)).labels, owner_.labels());
}

TEST_P(OwnedObjects, ANameThatIsNotOursIsNamedAndLeftAlone) {
  const ObjectOwner stranger{.instance = "stranger-" + owner_.instance, .sandbox_id = "contract"};
  ContainerSpec theirs = spec("one");
  theirs.labels = stranger.labels();
  const std::string id = must(client_->create_container(theirs));
  NetworkSpec their_network = network_spec("net", 0);
  their_network.labels = stranger.labels();
  const std::string network_id = must(client_->create_network(their_network));

  const auto container = run(client_->ensure_container(owner_, spec("one")));
  ASSERT_FALSE(container);
  EXPECT_EQ(container.error().kind(), EngineErrorKind::Conflict);
  EXPECT_THAT(container.error().message(),
              HasSubstr("container " + name("one") + " exists already"));
  const auto network = run(client_->ensure_network(owner_, network_spec("net", 0)));
  ASSERT_FALSE(network);
  EXPECT_THAT(network.error().message(), HasSubstr("network " + name("net") + " exists already"));
  EXPECT_FALSE(run(client_->remove_owned_container(owner_, id)));
  must(client_->remove_containers_of(owner_));
  must(client_->remove_networks_of(owner_));

  EXPECT_EQ(must(client_->inspect_container(id)).labels, theirs.labels);
  EXPECT_EQ(must(client_->inspect_network(network_id)).labels, their_network.labels);
  must(client_->remove_owned_container(stranger, id));
  must(client_->remove_networks_of(stranger));
}

TEST_P(OwnedObjects, AContainerIsMadeBeforeItsNetworkAndStartsWithIt) {
  const NetworkSpec network = network_spec("net", 0);
  ContainerSpec member = spec("member");
  member.network = network.name;
  const std::string id = must(client_->ensure_container(owner_, member));
  expect_kind(run(client_->start_container(id)), EngineErrorKind::NotFound,
              "network " + network.name + " not found");
  must(client_->ensure_network(owner_, network));
  must(client_->start_container(id));
  EXPECT_THAT(must(client_->inspect_network(network.name)).members, ElementsAre(Pair(id, _)));
}

// It has no labels, so that a filter for them would let none through.
TEST_P(OwnedObjects, AnEventTellsTheNameOfANetworkThatIsMade) {
  EngineStream stream =
      must(client_->open_events({.types = {"container", "network"}, .actions = {"create"}}));
  const std::string id = must(client_->create_network(network_spec("told", 0)));
  LineSplitter lines;
  while (true) {
    const EngineResult<std::string> piece = run(stream.read_some());
    ASSERT_TRUE(piece && !piece->empty());
    for (const std::string& line : *lines.feed(*piece)) {
      const EngineEvent event = *read_event(line);
      if (event.object_id != id) continue;  // somebody else's
      EXPECT_EQ(event.type, "network");
      EXPECT_EQ(event.action, "create");
      EXPECT_THAT(event.attributes, Contains(Pair("name", name("told"))));
      return;
    }
  }
}

TEST_P(OwnedObjects, DetachedMembersNoLongerHoldTheirNetwork) {
  const NetworkSpec network = network_spec("net", 0);
  must(client_->ensure_network(owner_, network));
  ContainerSpec member = spec("member");
  member.network = network.name;
  must(client_->start_container(must(client_->ensure_container(owner_, member))));
  running("elsewhere");  // has nothing to do with this network
  must(client_->detach_containers_of(owner_, network.name));
  must(client_->remove_networks_of(owner_));
  EXPECT_EQ(must(client_->list_containers(owner_.labels())).size(), 2U);
  must(client_->detach_containers_of(owner_, network.name));  // again, and without the network
}

TEST_P(OwnedObjects, RemovalTakesAllOfOneSandboxAndNothingElse) {
  for (int i = 0; i < 3; ++i) running("one" + std::to_string(i));
  ContainerSpec other = spec("other");
  other.labels[sandbox_label()] = "another";
  const std::string kept = must(client_->create_container(other));
  must(client_->remove_containers_of(owner_));
  EXPECT_THAT(must(client_->list_containers(owner_.labels())), IsEmpty());
  must(client_->remove_containers_of(owner_));  // nothing left is no error
  EXPECT_TRUE(run(client_->inspect_container(kept)));
  must(client_->remove_owned_container(owner_ = {.instance = owner_.instance}, kept));
  must(client_->remove_owned_container(owner_, kept));  // gone already is no error
}

// A filter without the colon lets all of them through, and all the others that it names.
TEST_P(OwnedObjects, AnEventTellsThatTheHealthOfAContainerHasChanged) {
  EngineStream stream = must(client_->open_events(
      {.labels = owner_.labels(), .types = {"container"}, .actions = {"die", "health_status"}}));
  ContainerSpec checked = spec("checked");
  checked.health_check = HealthCheck{.test = {"CMD-SHELL", "echo fine"}, .interval = 100ms};
  const std::string id = must(client_->create_container(checked));
  must(client_->start_container(id));
  EXPECT_EQ(must(client_->inspect_container(id)).health_test,
            (std::vector<std::string>{"CMD-SHELL", "echo fine"}));
  if (is_fake()) {
    fake_->engine().set_health(*fake_->engine().find_container(id), "healthy", "fine\n");
  }
  LineSplitter lines;
  std::vector<std::string> actions;
  while (actions.size() < 2) {
    const EngineResult<std::string> piece = run(stream.read_some());
    ASSERT_TRUE(piece && !piece->empty());
    for (const std::string& line : *lines.feed(*piece)) {
      const EngineEvent event = *read_event(line);
      EXPECT_EQ(event.object_id, id);
      actions.push_back(event.action);
      if (actions.size() > 1) continue;
      const ContainerSeen seen = must(client_->inspect_container(id));
      EXPECT_EQ(seen.health, "healthy");
      EXPECT_EQ(seen.probe_output, "fine");
      must(client_->stop_container(id, 0s));
    }
  }
  EXPECT_THAT(actions, ElementsAre("health_status: healthy", "die"));
}

TEST_P(OwnedObjects, AProcessThatCannotBeStartedHasAnExitCode) {
  const std::string id = running("one");
  if (is_fake()) {
    fake_->engine().find_container(id)->exec_answer = {
        .exit_code = 127, .output = "OCI runtime exec failed: no-such-program: not found\r\n"};
  }
  const ProcessEnd end = must(client_->run_process(id, {"no-such-program"}, 30s));
  EXPECT_THAT(end.exit_code, testing::AnyOf(126, 127));
  EXPECT_THAT(end.output, HasSubstr("no-such-program"));
}

TEST_P(OwnedObjects, AProcessThatDoesNotEndInTimeIsLeftAlone) {
  const std::string id = running("one");
  if (is_fake()) {
    fake_->engine().find_container(id)->exec_answer = {.output = "waiting\n", .has_end = false};
  }
  const auto late = run(client_->run_process(id, {"sh", "-c", "echo waiting; sleep 100"}, 300ms));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().kind(), EngineErrorKind::TimedOut);
  EXPECT_THAT(late.error().message(), HasSubstr("did not end within 0.3 s"));
  EXPECT_EQ(must(client_->inspect_container(id)).status, "running");
}

TEST_P(OwnedObjects, AProcessThatIsStartedRunsOnAsRoot) {
  const std::string id = running("one");
  const std::int64_t pid = must(client_->start_process(id, {"sleep", "1000"}));
  if (is_fake()) return;  // nothing runs
  EXPECT_GT(pid, 0);
  const ProcessEnd found = must(client_->run_process(
      id, {"sh", "-c", "test $(stat -c %u /proc/$(pidof sleep | cut -d' ' -f1)) = 0"}, 30s));
  EXPECT_EQ(found.exit_code, 0) << found.output;
}

TEST_P(OwnedObjects, AContainerIsFoundByItsLabelsUnderEitherName) {
  const ObjectOwner other{.instance = owner_.instance, .sandbox_id = "other"};
  const EngineLabels key{{"agbox-test-key", "k"}};
  const auto ensure = [&](const ObjectOwner& owner) {
    ContainerSpec wanted = spec("met");
    wanted.labels = owner.labels();
    return must(client_->ensure_container_with(owner, key, wanted, name("met-2")));
  };
  const std::string first = ensure(owner_);
  const std::string second = ensure(other);
  EXPECT_NE(first, second);
  EXPECT_EQ(ensure(owner_), first);
  EXPECT_EQ(ensure(other), second);
  EXPECT_EQ(must(client_->inspect_container(first)).name, name("met"));
  EXPECT_EQ(must(client_->inspect_container(second)).name, name("met-2"));
  must(client_->remove_owned_container(owner_, first));
  EXPECT_EQ(ensure(other), second) << "although its own name is free now";
  must(client_->remove_containers_of(other));
}

}  // namespace
}  // namespace agbox
