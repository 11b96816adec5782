// SPDX-License-Identifier: Apache-2.0
// What a client sees without a daemon.
#include <agbox/daemon_inspection.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "engine_probe.h"
#include "unit/sdk/scripted_daemon.h"

namespace agbox::sdk {
namespace {

using testing::HasSubstr;

class DaemonInspectionTest : public testing::Test {
 protected:
  DaemonInspectionTest() {
    for (const char* name : {"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"}) {
      ::setenv(name, temp_directory_.path().c_str(), 1);
    }
    ::setenv("DOCKER_HOST", ("unix://" + engine_socket().string()).c_str(), 1);
    std::filesystem::create_directory(temp_directory_.path() / "agbox");
  }
  ~DaemonInspectionTest() override {
    for (const char* name :
         {"XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DOCKER_HOST"}) {
      ::unsetenv(name);
    }
  }

  std::filesystem::path engine_socket() const { return temp_directory_.path() / "engine.sock"; }
  std::filesystem::path lock() const { return temp_directory_.path() / "agbox/agboxd.lock"; }

  UniqueFd listen() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = engine_socket();
    std::memcpy(address.sun_path, path.c_str(), path.size());
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // The socket interface takes every kind of address as a sockaddr.
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(fd.get(), generic, sizeof(address)), 0);
    EXPECT_EQ(::listen(fd.get(), 8), 0);
    return fd;
  }
  // An engine that says this to whoever asks first.
  EngineInspection probe_of_one_that_says(const std::string& answer) const {
    const UniqueFd listener = listen();
    const std::jthread engine([&] {  // the client blocks meanwhile
      const UniqueFd client(::accept(listener.get(), nullptr, nullptr));
      std::string question(256, '\0');
      EXPECT_GT(::recv(client.get(), question.data(), question.size(), 0), 0);
      EXPECT_THAT(question, HasSubstr("HEAD /_ping HTTP/1.0\r\n"));
      EXPECT_EQ(::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer.size()));
    });
    return probe_engine(engine_socket());
  }

  test::ShortDirectory temp_directory_;
};

TEST_F(DaemonInspectionTest, NameTheFilesOfADaemonThatNeverRan) {
  const auto inspection = inspect_daemon();
  EXPECT_EQ(inspection.lock, lock());
  EXPECT_EQ(inspection.lock_holder, std::nullopt);
  EXPECT_EQ(inspection.store, temp_directory_.path() / "agents-sandbox/ids.db");
  EXPECT_EQ(inspection.store_problem, "");
  EXPECT_FALSE(inspection.has_config_file);
  EXPECT_EQ(inspection.engine.socket, engine_socket());
  EXPECT_EQ(inspection.engine.problem, "No such file or directory");
  EXPECT_FALSE(inspection.engine.is_denied);
}

TEST_F(DaemonInspectionTest, NameTheProcessThatHoldsTheLockWhileItDoes) {
  {
    const UniqueFd held(::open(lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    std::ofstream(lock()) << ::getpid() << "\n";
    EXPECT_EQ(inspect_daemon().lock_holder, ::getpid());
  }
  EXPECT_EQ(inspect_daemon().lock_holder, std::nullopt) << "only its id is left";
}

TEST_F(DaemonInspectionTest, SayWhichPathsTheEnvironmentDoesNotDetermine) {
  ::unsetenv("XDG_RUNTIME_DIR");
  ::setenv("XDG_CONFIG_HOME", "relative", 1);
  const auto inspection = inspect_daemon();
  EXPECT_THAT(inspection.runtime_problem, HasSubstr("XDG_RUNTIME_DIR is required"));
  EXPECT_TRUE(inspection.lock.empty());
  EXPECT_THAT(inspection.config_problem, HasSubstr("XDG_CONFIG_HOME must be an absolute path"));
  EXPECT_EQ(inspection.store, temp_directory_.path() / "agents-sandbox/ids.db");
  EXPECT_EQ(inspection.engine.problem, "No such file or directory");
}

TEST_F(DaemonInspectionTest, SayWhatDockerHostMayNotBe) {
  ::setenv("DOCKER_HOST", "tcp://192.0.2.1:2375", 1);
  const auto inspection = inspect_daemon();
  EXPECT_TRUE(inspection.engine.socket.empty());
  EXPECT_THAT(inspection.engine.problem, HasSubstr("DOCKER_HOST is tcp://192.0.2.1:2375"));
}

TEST_F(DaemonInspectionTest, HaveTheEnginesOwnWords) {
  const EngineInspection inspection = probe_of_one_that_says(
      "HTTP/1.0 200 OK\r\nApi-Version: 1.51\r\nserver:Docker/28.5.2 (linux)\r\n\r\n");
  EXPECT_EQ(inspection.problem, "");
  EXPECT_EQ(inspection.server, "Docker/28.5.2 (linux)");
  EXPECT_EQ(inspection.api_version, "1.51");
}

TEST_F(DaemonInspectionTest, TellAnEngineFromSomethingElse) {
  EXPECT_EQ(probe_of_one_that_says("220 mail ready\r\n").problem,
            "the response is not that of a container engine");
}

TEST_F(DaemonInspectionTest, TellAStaleSocketFromAMissingOne) {
  listen().reset();
  EXPECT_EQ(probe_engine(engine_socket()).problem, "Connection refused");
}

TEST(HeaderOf, FindsNamesWhateverTheirCaseAndNothingInTheBody) {
  constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nA-B:  x y\r\nEmpty:\r\n\r\nC: z\r\n";
  EXPECT_EQ(header_of(kAnswer, "a-b"), "x y");
  EXPECT_EQ(header_of(kAnswer, "Empty"), "");
  EXPECT_EQ(header_of(kAnswer, "C"), "");
  EXPECT_EQ(header_of("", "C"), "");
  EXPECT_EQ(header_of("A: no end", "A"), "no end");
}

}  // namespace
}  // namespace agbox::sdk
