// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/images/registry_auth.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/unique_fd.h"
#include "engine/docker/images/helper_program.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FindCredentials, ReadsEveryFormOfAnEntry) {
  const auto stored = [](std::string_view config, std::string_view key) {
    return find_credentials(config, key)->stored;
  };
  const RegistryCredentials user{
      .username = "user", .password = "pass:word", .server_address = "reg.example"};
  // user:pass:word
  EXPECT_EQ(stored(R"({"auths":{"reg.example":{"auth":"dXNlcjpwYXNzOndvcmQ="}}})", "reg.example"),
            user);
  EXPECT_EQ(stored(R"({"auths":{"https://Reg.example/v2/":{"auth":"dXNlcjpwYXNzOndvcmQ"}}})",
                   "reg.example"),
            user);
  EXPECT_EQ(stored(R"({"auths":{"reg.example":{"username":"user","password":"pass:word"}}})",
                   "reg.example"),
            user);
  EXPECT_EQ(stored(R"({"auths":{"reg.example":{"auth":"dXNlcjo=","identitytoken":"tok"}}})",
                   "reg.example"),
            (RegistryCredentials{
                .username = "user", .identity_token = "tok", .server_address = "reg.example"}));
  EXPECT_EQ(stored(R"({"auths":{"other.example":{"auth":"dTpw"}}})", "reg.example"), std::nullopt);
  EXPECT_EQ(stored(R"({"auths":{"reg.example":{}}})", "reg.example"), std::nullopt);
  EXPECT_EQ(stored("{}", "reg.example"), std::nullopt);
}

TEST(FindCredentials, AHelperForTheRegistryWinsOverTheOneForAll) {
  constexpr std::string_view config =
      R"({"credsStore":"all","credHelpers":{"reg.example":"own"},"auths":{"reg.example":{}}})";
  EXPECT_EQ(find_credentials(config, "reg.example")->helper, "own");
  EXPECT_EQ(find_credentials(config, "other.example")->helper, "all");
}

TEST(FindCredentials, ABrokenFileIsAnErrorThatShowsNoSecret) {
  for (const std::string config :
       {"", "[", "[]", R"({"auths":7})", R"({"auths":{"reg.example":{"auth":"s e c r e t"}}})",
        R"({"auths":{"reg.example":{"auth":"c2VjcmV0"}}})", R"({"credsStore":"../../bin/sh"})",
        R"({"credsStore":"a b"})"}) {
    const auto found = find_credentials(config, "reg.example");
    ASSERT_FALSE(found) << config;
    EXPECT_THAT(found.error().message(), Not(HasSubstr("secret")));
    EXPECT_THAT(found.error().message(), Not(HasSubstr("s e c r e t")));
  }
}

TEST(RegistryAuthHeader, IsBase64OfTheUrlKind) {
  EXPECT_EQ(registry_auth_header({.username = "u", .password = "p?>", .server_address = "r"}),
            "eyJ1c2VybmFtZSI6InUiLCJwYXNzd29yZCI6InA_PiIsInNlcnZlcmFkZHJlc3MiOiJyIn0=");
  EXPECT_EQ(registry_auth_header({.identity_token = "t"}), "eyJpZGVudGl0eXRva2VuIjoidCJ9");
}

TEST(ReadHelperAnswer, KnowsPasswordsTokensAndNothing) {
  EXPECT_EQ(**read_helper_answer(R"({"ServerURL":"r","Username":"u","Secret":"p"})", 0, "r"),
            (RegistryCredentials{.username = "u", .password = "p", .server_address = "r"}));
  EXPECT_EQ(**read_helper_answer(R"({"Username":"<token>","Secret":"t"})", 0, "r"),
            (RegistryCredentials{.identity_token = "t", .server_address = "r"}));
  EXPECT_EQ(*read_helper_answer("credentials not found in native keychain\n", 1, "r"),
            std::nullopt);
  EXPECT_FALSE(read_helper_answer("something else", 1, "r"));
  EXPECT_FALSE(read_helper_answer("no json", 0, "r"));
  EXPECT_FALSE(read_helper_answer("[]", 0, "r"));
}

class HelperTest : public testing::Test {
 protected:
  HelperTest() {
    std::string directory =
        (std::filesystem::temp_directory_path() / "agbox-helper-XXXXXX").string();
    if (::mkdtemp(directory.data()) == nullptr) throw std::runtime_error("mkdtemp");
    temp_directory_ = directory;
    environment_ = {{"PATH", "relative:" + temp_directory_.string() + ":/usr/bin:/bin"},
                    {"DOCKER_CONFIG", temp_directory_.string()}};
  }
  ~HelperTest() override { std::filesystem::remove_all(temp_directory_); }

  void write_config(std::string_view text) {
    std::ofstream(temp_directory_ / "config.json") << text;
  }
  void write_program(const std::string& name, std::string_view script) {
    const auto path = temp_directory_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
  Result<std::string> header(const std::string& key, std::chrono::milliseconds deadline = 20s) {
    return loop_.run(RegistryAuth(environment_).header_for(key, deadline));
  }

  TestLoop loop_;
  std::filesystem::path temp_directory_;
  Environment environment_;
};

TEST_F(HelperTest, IsAskedForTheRegistryAndItsAnswerUsed) {
  write_config(R"({"credsStore":"test"})");
  write_program("docker-credential-test",
                R"(test "$1" = get || exit 9
read -r server
echo "{\"Username\":\"u-$server\",\"Secret\":\"p\"}")");
  EXPECT_EQ(header("reg.example"),
            registry_auth_header(
                {.username = "u-reg.example", .password = "p", .server_address = "reg.example"}));
}

TEST_F(HelperTest, WithoutAFileOrAnEntryThereIsNoHeader) {
  EXPECT_EQ(header("reg.example"), "");
  write_config("{}");
  EXPECT_EQ(header("reg.example"), "");
  EXPECT_EQ(loop_.run(RegistryAuth(Environment{}).header_for("reg.example")), "");
  EXPECT_EQ(loop_.run(RegistryAuth({{"HOME", temp_directory_.string()}}).header_for("reg.example")),
            "");
}

TEST_F(HelperTest, AMissingHelperIsNamedWithTheRemedy) {
  write_config(R"({"credsStore":"missing"})");
  EXPECT_THAT(header("reg.example").error().message(),
              HasSubstr("docker-credential-missing is not in PATH; install it"));
}

TEST_F(HelperTest, AHangingHelperIsKilledWithAllItsChildren) {
  write_config(R"({"credsStore":"slow"})");
  // It and its child hold this open for writing.
  const std::filesystem::path held = temp_directory_ / "held";
  ASSERT_EQ(::mkfifo(held.c_str(), 0600), 0);
  const UniqueFd reader(::open(held.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_program("docker-credential-slow", "exec 3>" + held.string() + "; sleep 1000 & wait");
  const auto result = header("reg.example", 300ms);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(),
              HasSubstr("docker-credential-slow gave no answer within 300 ms"));
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "the helper is reaped";
  char byte = 0;
  while (::read(reader.get(), &byte, 1) != 0) {
    pollfd until_closed{.fd = reader.get(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&until_closed, 1, 60'000), 1) << "a child of the helper lives on";
  }
}

TEST_F(HelperTest, AFloodOfOutputIsRefused) {
  write_program("flood", "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
  const auto result = loop_.run(run_helper({.program = "flood", .environment = environment_}, 20s));
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("wrote more than 65536 bytes"));
}

TEST_F(HelperTest, TheExitCodeTellsHowItEnded) {
  write_program("coded", "exit 7");
  write_program("signalled", "kill -9 $$");
  const auto code_of = [this](const std::string& name) {
    return loop_.run(run_helper({.program = name, .environment = environment_}, 20s))->exit_code;
  };
  EXPECT_EQ(code_of("coded"), 7);
  EXPECT_EQ(code_of("signalled"), 128 + 9);
}

TEST_F(HelperTest, InheritsNothingOfOurs) {
  // As a socket of a library that does not think of programs.
  const int inherited = ::fcntl(STDERR_FILENO, F_DUPFD, 200);
  ASSERT_GE(inherited, 200);
  write_program("curious", "test ! -e /proc/$$/fd/" + std::to_string(inherited));
  const auto result =
      loop_.run(run_helper({.program = "curious", .environment = environment_}, 20s));
  ::close(inherited);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_code, 0) << "it has our descriptor " << inherited;
}

TEST_F(HelperTest, ACancelledRunLeavesNoProcess) {
  write_program("slow", "echo $$ > " + (temp_directory_ / "pid").string() + "; sleep 1000");
  auto task = loop_.spawn(run_helper({.program = "slow", .environment = environment_}, 20s));
  loop_.run_until_idle();
  task.cancel();
  loop_.run_until([&] { return task.is_done(); });
  EXPECT_FALSE(task.result());
}

TEST_F(HelperTest, AConfigThatIsNoFileIsAnErrorNotAHang) {
  ASSERT_EQ(::mkfifo((temp_directory_ / "config.json").c_str(), 0600), 0);
  EXPECT_THAT(header("reg.example").error().message(), HasSubstr("is not a file"));
}

}  // namespace
}  // namespace agbox
