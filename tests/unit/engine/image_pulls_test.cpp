// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/images/image_pulls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr std::string_view kReference = "docker.io/library/big:latest";

class ImagePullsTest : public testing::Test {
 protected:
  ImagePullsTest() {
    docker_.engine().registry[std::string(kReference)] = {
        .lines = {R"({"status":"Pulling from library/big","id":"latest"})",
                  R"({"status":"Downloading","progressDetail":{"current":1,"total":9},"id":"a"})",
                  R"({"status":"Downloading","progressDetail":{"current":5,"total":9},"id":"a"})",
                  R"({"status":"Pull complete","progressDetail":{},"id":"a"})"}};
  }
  ~ImagePullsTest() override { loop_.run(pulls_.stop()); }

  static std::string line(int number) {
    return "PULL " + std::string(kReference) + " " + std::to_string(number);
  }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  EngineClient client_{loop_.executor(), {.socket_path = docker_.socket_path()}};
  RegistryAuth auth_{Environment{}};
  ImagePulls pulls_{client_, auth_, Logger(), {.report_interval = 0ms}};
};

TEST_F(ImagePullsTest, AnImageThatIsThereIsNotPulled) {
  docker_.engine().add_image("big");
  EXPECT_TRUE(loop_.run(pulls_.ensure_image("big")));
  EXPECT_EQ(docker_.calls("POST /images/create"), 0);
}

TEST_F(ImagePullsTest, AnImageThatCameSinceTheFirstLookIsNotPulledAgain) {
  docker_.engine().add_image("big");
  docker_.reply("GET /images/*", 404, R"({"message":"No such image: big"})", 1);
  EXPECT_TRUE(loop_.run(pulls_.ensure_image("big")));
  EXPECT_EQ(docker_.calls("POST /images/create"), 0);
}

TEST_F(ImagePullsTest, TwentyWaitersShareOnePullHoweverTheySpellIt) {
  docker_.hold(line(0));
  std::vector<TestTask<EngineResult<ImageSeen>>> waiters;
  for (int i = 0; i < 20; ++i) {
    waiters.push_back(
        loop_.spawn(pulls_.ensure_image(i % 2 == 0 ? "big" : "docker.io/library/big:latest")));
  }
  loop_.run_until([&] { return docker_.calls("GET /images/*") >= 20; });
  loop_.run_until([&] { return docker_.held(line(0)) == 1; });
  docker_.release(line(0));
  for (auto& waiter : waiters) {
    loop_.run_until([&] { return waiter.is_done(); });
    ASSERT_TRUE(waiter.result()) << waiter.result().error().message();
    EXPECT_THAT(waiter.result()->id, HasSubstr("sha256:"));
  }
  EXPECT_EQ(docker_.calls("POST /images/create"), 1);
}

TEST_F(ImagePullsTest, OneWaiterLeavesAndTheOthersGetTheImage) {
  docker_.hold(line(1));
  auto first = loop_.spawn(pulls_.ensure_image("big"));
  auto second = loop_.spawn(pulls_.ensure_image("big"));
  loop_.run_until([&] { return docker_.held(line(1)) == 1; });
  first.cancel();
  loop_.run_until([&] { return first.is_done(); });
  EXPECT_EQ(first.result().error().kind(), EngineErrorKind::Cancelled);
  EXPECT_EQ(docker_.abandoned(line(1)), 0);
  docker_.release(line(1));
  loop_.run_until([&] { return second.is_done(); });
  EXPECT_TRUE(second.result());
}

TEST_F(ImagePullsTest, WhenTheLastWaiterLeavesThePullIsGivenUp) {
  docker_.hold(line(1), 1);
  auto first = loop_.spawn(pulls_.ensure_image("big"));
  auto second = loop_.spawn(pulls_.ensure_image("big"));
  loop_.run_until([&] { return docker_.held(line(1)) == 1; });
  first.cancel();
  second.cancel();
  loop_.run_until([&] { return docker_.abandoned(line(1)) == 1; });
  EXPECT_TRUE(loop_.run(pulls_.ensure_image("big"))) << "the next one begins anew";
  EXPECT_EQ(docker_.calls("POST /images/create"), 2);
}

TEST_F(ImagePullsTest, AnErrorInTheStreamReachesEveryWaiterWithTheRegistrysWords) {
  docker_.engine().registry[std::string(kReference)] = {
      .lines = {R"({"status":"Pulling from library/big","id":"latest"})",
                R"({"errorDetail":{"message":"toomanyrequests: slow down"},"error":"x"})"},
      .succeeds = false};
  docker_.hold(line(1));
  auto first = loop_.spawn(pulls_.ensure_image("big"));
  auto second = loop_.spawn(pulls_.ensure_image("big"));
  loop_.run_until(
      [&] { return docker_.calls("GET /images/*") == 3 && docker_.held(line(1)) == 1; });
  docker_.release(line(1));
  for (auto* waiter : {&first, &second}) {
    loop_.run_until([&] { return waiter->is_done(); });
    ASSERT_FALSE(waiter->result());
    EXPECT_EQ(waiter->result().error().kind(), EngineErrorKind::Refused);
    EXPECT_THAT(waiter->result().error().message(),
                HasSubstr("pull image docker.io/library/big:latest: Error response from daemon: "
                          "toomanyrequests: slow down"));
  }
}

TEST_F(ImagePullsTest, AnImageThatNoRegistryHasIsNotFound) {
  const auto result = loop_.run(pulls_.ensure_image("none"));
  EXPECT_EQ(result.error().kind(), EngineErrorKind::NotFound);
  EXPECT_THAT(result.error().message(), HasSubstr("pull access denied for docker.io/library/none"));
}

TEST_F(ImagePullsTest, AnIdIsNeverPulled) {
  const auto result = loop_.run(pulls_.ensure_image("sha256:" + std::string(64, 'a')));
  EXPECT_EQ(result.error().kind(), EngineErrorKind::NotFound);
  EXPECT_EQ(docker_.calls("POST /images/create"), 0);
}

TEST_F(ImagePullsTest, ANameThatIsNoneNeverReachesTheEngine) {
  EXPECT_EQ(loop_.run(pulls_.ensure_image("../../info")).error().kind(), EngineErrorKind::Refused);
  EXPECT_EQ(docker_.calls("*"), 0);
}

TEST_F(ImagePullsTest, ABrokenPullIsAnOpenQuestion) {
  docker_.drop(line(2), 1);
  const auto result = loop_.run(pulls_.ensure_image("big"));
  EXPECT_TRUE(result.error().is_open()) << result.error().message();
  EXPECT_TRUE(loop_.run(pulls_.ensure_image("big")));
}

TEST_F(ImagePullsTest, ASilentPullIsGivenUp) {
  ImagePulls impatient(client_, auth_, Logger(), {.report_interval = 0ms, .longest_silence = 40ms});
  docker_.hang(line(1));
  const auto result = loop_.run(impatient.ensure_image("big"));
  EXPECT_TRUE(result.error().is_open());
  EXPECT_THAT(result.error().message(), HasSubstr("no answer within"));
  loop_.run(impatient.stop());
}

TEST_F(ImagePullsTest, ListenersHearOfProgress) {
  std::vector<PullProgress> heard;
  ASSERT_TRUE(loop_.run(pulls_.ensure_image(
      "big", [&](const PullProgress& progress) { heard.push_back(progress); })));
  ASSERT_FALSE(heard.empty());
  EXPECT_EQ(heard.back(), (PullProgress{1, 1, 9, 9}));
}

TEST_F(ImagePullsTest, AQuickPullIsNotReported) {
  ImagePulls calm(client_, auth_, Logger(), {.report_interval = 1h});
  int heard = 0;
  ASSERT_TRUE(loop_.run(calm.ensure_image("big", [&](const PullProgress&) { ++heard; })));
  EXPECT_EQ(heard, 0);
  loop_.run(calm.stop());
}

TEST_F(ImagePullsTest, StopGivesUpEveryPullAndWaits) {
  docker_.hang(line(1));
  auto waiter = loop_.spawn(pulls_.ensure_image("big"));
  loop_.run_until([&] { return docker_.held(line(1)) == 1; });
  loop_.run(pulls_.stop());
  loop_.run_until([&] { return waiter.is_done(); });
  EXPECT_EQ(waiter.result().error().kind(), EngineErrorKind::Cancelled);
  EXPECT_EQ(loop_.run(pulls_.ensure_image("big")).error().kind(), EngineErrorKind::Cancelled);
}

TEST_F(ImagePullsTest, CredentialsGoWithThePull) {
  std::string directory = (std::filesystem::temp_directory_path() / "agbox-auth-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  std::ofstream(std::string(directory) + "/config.json")
      << R"({"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}})";
  docker_.engine().registry[std::string(kReference)].required_auth = registry_auth_header(
      {.username = "u", .password = "p", .server_address = "https://index.docker.io/v1/"});
  EXPECT_FALSE(loop_.run(pulls_.ensure_image("big")));
  const RegistryAuth auth({{"DOCKER_CONFIG", directory}});
  ImagePulls known(client_, auth, Logger());
  EXPECT_TRUE(loop_.run(known.ensure_image("big")));
  loop_.run(known.stop());
  std::filesystem::remove_all(directory);
}

TEST_F(ImagePullsTest, CredentialsThatCannotBeReadAreNamedWhenThePullIsRefused) {
  std::string directory = (std::filesystem::temp_directory_path() / "agbox-auth-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  std::ofstream(std::string(directory) + "/config.json") << "{ broken";
  const RegistryAuth auth({{"DOCKER_CONFIG", directory}});
  ImagePulls pulls(client_, auth, Logger());
  EXPECT_TRUE(loop_.run(pulls.ensure_image("big"))) << "a public image needs none";
  const auto refused = loop_.run(pulls.ensure_image("none"));
  EXPECT_THAT(refused.error().message(),
              HasSubstr("(pulled without credentials: " + std::string(directory) +
                        "/config.json: it is not JSON"));
  loop_.run(pulls.stop());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace agbox
