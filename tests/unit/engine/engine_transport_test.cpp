// SPDX-License-Identifier: Apache-2.0
// The client against an engine that hangs, breaks off, lies, restarts or is another one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "engine/docker/api/engine_client.h"
#include "model/reasons.h"
#include "support/fake_docker/fake_docker.h"
#include "support/test_loop.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Long enough for the call to reach the engine on a busy machine.
const CallOptions kSoon{.deadline = 400ms};

class EngineTransportTest : public testing::Test {
 protected:
  EngineTransportTest() : client_(loop_.executor(), options()) {
    docker_.engine().add_image("busybox");
  }

  EngineOptions options() {
    EngineOptions options{.socket_path = docker_.socket_path()};
    options.on_engine_seen = [this](const EngineIdentity& engine) { seen_.push_back(engine.id); };
    options.largest_answer = 100'000;
    return options;
  }

  EngineError error_of(EngineAwaitable<> call) {
    const EngineResult<> result = loop_.run(std::move(call));
    if (result) throw std::runtime_error("it succeeded");
    return result.error();
  }

  TestLoop loop_;
  FakeDocker docker_{loop_.io()};
  std::vector<std::string> seen_;
  EngineClient client_;
};

TEST_F(EngineTransportTest, GetsAcquaintedOnceAndKeepsTheConnection) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(loop_.run(client_.ping()));
  EXPECT_EQ(docker_.calls("GET /version"), 1);
  EXPECT_EQ(docker_.calls("GET /info"), 1);
  EXPECT_EQ(docker_.open_connections(), 1);
  EXPECT_THAT(seen_, ElementsAre("FAKE:ENGINE:0001"));
}

TEST_F(EngineTransportTest, ManyCallsAtOnceAskWhoIsThereOnlyOnce) {
  std::vector<TestTask<EngineResult<>>> pings;
  for (int i = 0; i < 50; ++i) pings.push_back(loop_.spawn(client_.ping()));
  for (auto& ping : pings) {
    loop_.run_until([&] { return ping.is_done(); });
    EXPECT_TRUE(ping.result());
  }
  EXPECT_EQ(docker_.calls("GET /version"), 1);
  loop_.run_until_idle();
  EXPECT_LE(docker_.open_connections(), 8) << "idle connections are bounded";
}

TEST_F(EngineTransportTest, NobodyListeningIsUnavailableAndNamesTheSocket) {
  docker_.stop_listening();
  const EngineError error = error_of(client_.ping());
  EXPECT_EQ(error.kind(), EngineErrorKind::Unavailable);
  EXPECT_EQ(error.reason(), reason::kEngineUnavailable);
  EXPECT_THAT(error.message(), HasSubstr(docker_.socket_path()));
  EXPECT_THAT(error.message(), HasSubstr("is it running?"));
}

TEST_F(EngineTransportTest, AHangingEngineIsUnavailableAfterTheDeadline) {
  for (const std::string call : {"GET /version", "GET /info", "POST /containers/c1/start"}) {
    SCOPED_TRACE(call);
    docker_.hang(call);
    docker_.hang("GET /_ping");
    const EngineError error = error_of(client_.start_container("c1", kSoon));
    EXPECT_EQ(error.kind(), EngineErrorKind::Unavailable);
    EXPECT_THAT(error.message(), HasSubstr("start container c1: the engine gave no answer within"));
    loop_.run_until_idle();
    EXPECT_EQ(docker_.held(call), 0) << "a call that was given up holds its connection";
    docker_.clear_faults();
  }
}

TEST_F(EngineTransportTest, ACallThatHangsAloneIsTimedOutAndAffectsNoOther) {
  const auto stream = loop_.run(client_.open_events({}));
  ASSERT_TRUE(stream);
  docker_.hang("POST /containers/c1/start");
  const EngineError error = error_of(client_.start_container("c1", kSoon));
  EXPECT_EQ(error.kind(), EngineErrorKind::TimedOut);
  EXPECT_EQ(error.reason(), reason::kEngineTimeout);
  EXPECT_TRUE(error.is_definite());
  EXPECT_THAT(error.message(), HasSubstr("start container c1: the engine gave no answer within"));
  EXPECT_THAT(error.message(), HasSubstr("restart the engine"));
  EXPECT_TRUE(loop_.run(client_.ping()));
  EXPECT_EQ(docker_.calls("GET /version"), 1) << "it is the same engine";
  docker_.hang("POST /containers/create");
  const auto created = loop_.run(client_.create_container({.name = "c", .image = "i"}, kSoon));
  EXPECT_EQ(created.error().kind(), EngineErrorKind::Unavailable) << "it may still be created";
}

TEST_F(EngineTransportTest, ABrokenConnectionIsUnavailable) {
  docker_.drop("POST /containers/c1/start");
  EXPECT_EQ(error_of(client_.start_container("c1")).kind(), EngineErrorKind::Unavailable);
  EXPECT_THAT(error_of(client_.start_container("c1")).message(),
              HasSubstr("the engine closed the connection"));
}

TEST_F(EngineTransportTest, GarbageIsAnErrorWhateverItLooksLike) {
  ASSERT_TRUE(loop_.run(client_.ping()));
  const std::vector<std::pair<std::string, EngineErrorKind>> rows = {
      {"\x16\x03\x01 not http at all\r\n\r\n", EngineErrorKind::Garbled},
      {"HTTP/1.1 999999 X\r\n\r\n", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"Id\":", EngineErrorKind::Unavailable},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"I",
       EngineErrorKind::Unavailable},
      {"HTTP/1.1 200 O", EngineErrorKind::Unavailable},
      {"", EngineErrorKind::Unavailable},
      {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x') + "\r\n\r\n", EngineErrorKind::Garbled},
      {"HTTP/1.1 200 OK\r\n\r\n" + std::string(200'000, ' '), EngineErrorKind::Garbled},
  };
  for (const auto& [bytes, kind] : rows) {
    SCOPED_TRACE(bytes.substr(0, 60));
    docker_.garble("GET /containers/c1/json", bytes, 1);
    const auto seen = loop_.run(client_.inspect_container("c1"));
    ASSERT_FALSE(seen);
    EXPECT_EQ(seen.error().kind(), kind) << seen.error().message();
    EXPECT_EQ(seen.error().reason(), reason::kEngineUnavailable);
    EXPECT_THAT(seen.error().message(), HasSubstr("inspect container c1"));
  }
  EXPECT_TRUE(loop_.run(client_.ping())) << "it goes on afterwards";
}

TEST_F(EngineTransportTest, TheEnginesOwnWordsArePreserved) {
  const auto refuse_with = [&](int status, std::string_view body) {
    docker_.reply("POST /containers/c1/start", status, body, 1);
    return error_of(client_.start_container("c1"));
  };
  EngineError error = refuse_with(500, R"({"message":"no space left on device"})");
  EXPECT_EQ(error.kind(), EngineErrorKind::Refused);
  EXPECT_EQ(error.http_status(), 500);
  EXPECT_EQ(error.engine_text(), "no space left on device");
  EXPECT_EQ(error.message(),
            "start container c1: Error response from daemon: no space left on device");
  EXPECT_EQ(refuse_with(404, R"({"message":"x"})").kind(), EngineErrorKind::NotFound);
  EXPECT_EQ(refuse_with(409, R"({"message":"x"})").kind(), EngineErrorKind::Conflict);
  EXPECT_EQ(refuse_with(403, R"({"message":"x"})").kind(), EngineErrorKind::Refused);
  EXPECT_EQ(refuse_with(503, R"({"message":"x"})").kind(), EngineErrorKind::Unavailable);
  EXPECT_EQ(refuse_with(400, "plain text\n").engine_text(), "plain text");
  EXPECT_THAT(refuse_with(502, "").message(), HasSubstr("HTTP status 502"));
  error = refuse_with(500, R"({"message":")" + std::string(100'000, 'y') + "\"}");
  EXPECT_LT(error.message().size(), 5000U) << "a hostile text must not fill the store";
}

TEST_F(EngineTransportTest, A403OfANetworkIsAConflictUnlessItIsAboutRights) {
  docker_.reply("DELETE /networks/n1", 403, R"({"message":"has active endpoints"})", 1);
  EXPECT_EQ(error_of(client_.remove_network("n1")).kind(), EngineErrorKind::Conflict);
  docker_.reply("DELETE /networks/n1", 403, R"({"message":"authorization denied by plugin x"})", 1);
  EXPECT_EQ(error_of(client_.remove_network("n1")).kind(), EngineErrorKind::Refused);
}

TEST_F(EngineTransportTest, AfterARestartItAsksAgainWhoIsThere) {
  ASSERT_TRUE(loop_.run(client_.ping()));
  docker_.stop_listening();
  docker_.listen();
  ASSERT_TRUE(loop_.run(client_.ping())) << "an idle connection that is dead is not used";
  EXPECT_EQ(docker_.calls("GET /version"), 2);
  EXPECT_EQ(seen_.size(), 2U);
}

TEST_F(EngineTransportTest, ABrokenStreamMeansAnotherAcquaintanceToo) {
  const auto stream = loop_.run(client_.open_events({}));
  ASSERT_TRUE(stream);
  docker_.drop("GET /containers/c1/json", 1);
  ASSERT_FALSE(loop_.run(client_.inspect_container("c1")));
  ASSERT_TRUE(loop_.run(client_.ping()));
  EXPECT_EQ(docker_.calls("GET /version"), 2);
}

TEST_F(EngineTransportTest, AnotherEngineCountsAsUnreachable) {
  const CallOptions mine{.expected_engine = "FAKE:ENGINE:0001"};
  ASSERT_TRUE(loop_.run(client_.ping(mine)));
  docker_.stop_listening();
  docker_.engine().id = "FAKE:ENGINE:0002";
  docker_.listen();
  docker_.forget_calls();
  const EngineError error = error_of(client_.start_container("c1", mine));
  EXPECT_EQ(error.kind(), EngineErrorKind::Unavailable);
  EXPECT_THAT(error.message(), HasSubstr("another engine (FAKE:ENGINE:0002) is behind"));
  EXPECT_EQ(docker_.calls("POST *"), 0) << "the other engine is told nothing";
  EXPECT_TRUE(loop_.run(client_.ping())) << "who does not care which engine it is goes on";
}

TEST_F(EngineTransportTest, SpeaksTheVersionThatTheEngineWants) {
  docker_.engine().newest_api = "1.56";
  docker_.engine().oldest_api = "1.44";
  ASSERT_TRUE(loop_.run(client_.ping()));
  EXPECT_EQ(loop_.run(client_.engine())->api, (ApiVersion{1, 56}));
}

TEST_F(EngineTransportTest, AnEngineThatRefusesTheVersionIsGotToKnowAgain) {
  docker_.engine().newest_api = "1.51";
  ASSERT_TRUE(loop_.run(client_.ping()));
  docker_.engine().newest_api = "1.41";  // another engine, without a connection having broken
  const EngineError error = error_of(client_.ping());
  EXPECT_EQ(error.kind(), EngineErrorKind::Unavailable) << error.message();
  EXPECT_TRUE(loop_.run(client_.ping()));
}

TEST_F(EngineTransportTest, AnUnfitEngineIsToldByItsReasonAlone) {
  docker_.engine().info_overrides = {
      {"SecurityOptions", {"name=seccomp,profile=default", "name=rootless"}}};
  const EngineError error = error_of(client_.ping());
  EXPECT_EQ(error.kind(), EngineErrorKind::Unfit);
  EXPECT_TRUE(error.is_open());
  EXPECT_THAT(error.message(), testing::StartsWith("Docker "));
  EXPECT_THAT(error.message(), HasSubstr("cannot run sandboxes: it is rootless"));
  EXPECT_TRUE(loop_.run(client_.identify())->is_rootless) << "it can still be looked at";
  docker_.engine().info_overrides.clear();
  EXPECT_TRUE(loop_.run(client_.ping())) << "a repaired engine is taken";
}

TEST_F(EngineTransportTest, ATooOldEngineIsToldByItsReasonAlone) {
  docker_.engine().newest_api = "1.40";
  EXPECT_THAT(error_of(client_.ping()).message(), HasSubstr("is too old"));
}

TEST_F(EngineTransportTest, ACancelledCallAnswersAndLeavesNothingOpen) {
  for (const std::string call : {"GET /version", "POST /containers/c1/start"}) {
    SCOPED_TRACE(call);
    docker_.hang(call);
    auto start = loop_.spawn(client_.start_container("c1"));
    loop_.run_until([&] { return docker_.held(call) == 1; });
    start.cancel();
    loop_.run_until([&] { return start.is_done(); });
    EXPECT_EQ(start.result().error().kind(), EngineErrorKind::Cancelled);
    loop_.run_until([&] { return docker_.abandoned(call) == 1; });
    docker_.clear_faults();
  }
}

TEST_F(EngineTransportTest, OnceCancelledACoroutineMakesNoFurtherCall) {
  docker_.hang("GET /_ping");
  const auto two_calls = [this]() -> EngineAwaitable<> {
    EngineResult<> first = co_await client_.ping();
    EXPECT_EQ(first.error().kind(), EngineErrorKind::Cancelled);
    co_return co_await client_.start_container("c1");
  };
  auto task = loop_.spawn(two_calls());
  loop_.run_until([&] { return docker_.held("GET /_ping") == 1; });
  task.cancel();
  loop_.run_until([&] { return task.is_done(); });
  EXPECT_EQ(task.result().error().kind(), EngineErrorKind::Cancelled);
  EXPECT_EQ(docker_.calls("POST *"), 0);
}

TEST_F(EngineTransportTest, WhoWaitsForAnotherCallsAcquaintanceCarriesOnWhenThatIsCancelled) {
  docker_.hang("GET /version", 1);
  auto first = loop_.spawn(client_.ping());
  loop_.run_until([&] { return docker_.held("GET /version") == 1; });
  auto second = loop_.spawn(client_.ping());
  auto impatient = loop_.spawn(client_.ping(kSoon));
  loop_.run_until([&] { return impatient.is_done(); });
  EXPECT_EQ(impatient.result().error().kind(), EngineErrorKind::Unavailable);
  EXPECT_FALSE(second.is_done());
  first.cancel();
  loop_.run_until([&] { return second.is_done(); });
  EXPECT_TRUE(second.result());
}

TEST_F(EngineTransportTest, ASlowEngineHoldsUpNobodyElse) {
  docker_.hold("POST /containers/slow/start");
  docker_.engine().add_image("i");
  ASSERT_TRUE(loop_.run(client_.create_container({.name = "slow", .image = "i"})));
  auto slow = loop_.spawn(client_.start_container("slow"));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(loop_.run(client_.ping()));
  EXPECT_FALSE(slow.is_done());
  docker_.release("POST /containers/slow/start");
  loop_.run_until([&] { return slow.is_done(); });
  EXPECT_TRUE(slow.result());
}

}  // namespace
}  // namespace agbox
