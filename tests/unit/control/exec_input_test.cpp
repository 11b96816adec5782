// SPDX-License-Identifier: Apache-2.0
// Which client writes to the input of an exec, and what is sent to the guest.
#include <unistd.h>

#include <array>

#include "model/reasons.h"
#include "unit/control/exec_fixture.h"

namespace agbox {
namespace {

using testing::HasSubstr;

void with_stdin(v1::CreateExecRequest& request) {
  request.set_stdin(true);
}

void with_terminal(v1::CreateExecRequest& request) {
  request.mutable_terminal()->mutable_size()->set_rows(50);
  request.mutable_terminal()->mutable_size()->set_columns(132);
}

// A client that writes.
struct Client {
  bool was_stopped = false;
  std::function<void()> released;
  bool releases_at_once = true;
  std::shared_ptr<const InputWriter> writer = std::make_shared<const InputWriter>(
      InputWriter{.take_over = [this](std::function<void()> done) {
        was_stopped = true;
        released = std::move(done);
        if (releases_at_once) released();
      }});
};

class ExecInputTest : public ExecTest {
 protected:
  using Reply = std::shared_ptr<std::optional<Result<ExecInput>>>;

  Reply begin_attach(const std::string& exec_id, const Client& client) {
    auto reply = std::make_shared<std::optional<Result<ExecInput>>>();
    directory().attach_exec_input(exec_id, client.writer,
                                  [reply](auto result) { *reply = std::move(result); });
    return reply;
  }
  Result<ExecInput> attach(const std::string& exec_id, const Client& client) {
    const Reply reply = begin_attach(exec_id, client);
    run_until([&] { return reply->has_value(); });
    return std::move(**reply);
  }
  const guest::v1::ToGuest& wait_order(const std::string& exec_id) {
    run_until([&] { return !given(exec_id)->orders.empty(); });
    return given(exec_id)->orders.back();
  }
};

TEST_F(ExecInputTest, AWriterGetsAPipeToTheGuest) {
  begin_exec("cat-1", with_stdin);
  EXPECT_TRUE(given("cat-1")->order.has_input());
  EXPECT_TRUE(exec("cat-1").stdin());
  EXPECT_FALSE(exec("cat-1").tty());
  const Client client;
  const auto input = attach("cat-1", client);
  ASSERT_TRUE(input.has_value()) << input.error().message();
  EXPECT_EQ(input->position, 0U);
  ASSERT_EQ(::write(input->pipe.get(), "hello", 5), 5);
  std::array<char, 8> bytes{};
  EXPECT_EQ(::read(given("cat-1")->inputs.at(0).get(), bytes.data(), bytes.size()), 5);
}

TEST_F(ExecInputTest, AnExecWithoutInputIsNamedWithTheRemedy) {
  begin_exec("deaf-1");
  EXPECT_FALSE(given("deaf-1")->order.has_input());
  const Client client;
  const auto input = attach("deaf-1", client);
  ASSERT_FALSE(input.has_value());
  EXPECT_EQ(input.error().reason(), reason::kExecHasNoInput);
  EXPECT_THAT(input.error().message(), HasSubstr("agbox exec run -i"));
}

TEST_F(ExecInputTest, ALaterWriterTakesOverOnceTheFormerHasStopped) {
  begin_exec("two-1", with_stdin);
  Client first;
  first.releases_at_once = false;
  ASSERT_TRUE(attach("two-1", first).has_value());
  const Client second;
  const Reply reply = begin_attach("two-1", second);
  run_until([&] { return first.was_stopped; });
  settle();
  EXPECT_FALSE(reply->has_value());
  EXPECT_EQ(given("two-1")->inputs.size(), 1U);
  first.released();
  run_until([&] { return reply->has_value(); });
  ASSERT_TRUE((*reply)->has_value());
  EXPECT_EQ((**reply)->position, 100U);
  EXPECT_FALSE(second.was_stopped);
}

TEST_F(ExecInputTest, OfManyAtOnceTheLastOneWrites) {
  begin_exec("many-1", with_stdin);
  const Client first;
  const Client second;
  const Client third;
  const Reply one = begin_attach("many-1", first);
  const Reply two = begin_attach("many-1", second);
  const Reply three = begin_attach("many-1", third);
  run_until([&] { return one->has_value() && two->has_value() && three->has_value(); });
  EXPECT_EQ((*one)->error().reason(), reason::kExecInputTaken);
  EXPECT_EQ((*two)->error().reason(), reason::kExecInputTaken);
  EXPECT_TRUE((*three)->has_value());
}

TEST_F(ExecInputTest, AWriterThatIsGoneIsNotAsked) {
  begin_exec("gone-1", with_stdin);
  {
    const Client first;
    ASSERT_TRUE(attach("gone-1", first).has_value());
  }
  const Client second;
  EXPECT_TRUE(attach("gone-1", second).has_value());
}

TEST_F(ExecInputTest, WhatTheGuestSaysIsTheReason) {
  create_ready("box-2");
  guests_.script.input = guest::v1::InputAttached::OUTCOME_CLOSED;
  create_ready("box-3");
  begin_exec("closed-1", with_stdin, "box-3");
  const Client client;
  EXPECT_EQ(attach("closed-1", client).error().reason(), reason::kExecInputClosed);
  guests_.script.input = guest::v1::InputAttached::OUTCOME_FAILED;
  create_ready("box-4");
  begin_exec("failed-1", with_stdin, "box-4");
  const auto failed = attach("failed-1", client);
  EXPECT_EQ(failed.error().reason(), reason::kResourceExhausted);
  EXPECT_THAT(failed.error().message(), HasSubstr("the test says so"));
}

TEST_F(ExecInputTest, ARestartedDaemonWaitsForTheGuest) {
  begin_exec("again-1", with_stdin);
  const Client before;
  ASSERT_TRUE(attach("again-1", before).has_value());
  restart();
  const Client after;
  const auto input = attach("again-1", after);
  ASSERT_TRUE(input.has_value()) << input.error().message();
  EXPECT_EQ(input->position, 100U);
}

TEST_F(ExecInputTest, OnlyTheWriterEndsTheInput) {
  begin_exec("end-1", with_stdin);
  const Client first;
  const Client second;
  ASSERT_TRUE(attach("end-1", first).has_value());
  ASSERT_TRUE(attach("end-1", second).has_value());
  EXPECT_EQ(directory().end_exec_input("end-1", first.writer.get()).error().reason(),
            reason::kExecInputTaken);
  ASSERT_TRUE(directory().end_exec_input("end-1", second.writer.get()).has_value());
  EXPECT_TRUE(wait_order("end-1").has_end_input());
}

TEST_F(ExecInputTest, ATerminalHasItsSizeAndName) {
  begin_exec("tty-1", with_terminal);
  const guest::v1::StartExec& order = given("tty-1")->order;
  EXPECT_EQ(order.terminal().rows(), 50U);
  EXPECT_EQ(order.terminal().columns(), 132U);
  EXPECT_THAT(order.environment(), testing::Contains("TERM=xterm"));
  EXPECT_TRUE(exec("tty-1").tty());
  EXPECT_TRUE(exec("tty-1").stdin());
  ASSERT_TRUE(directory().resize_exec_terminal("tty-1", {.rows = 10, .columns = 20}).has_value());
  EXPECT_EQ(wait_order("tty-1").resize_terminal().size().columns(), 20U);
  begin_exec("tty-2", [](auto& r) { r.mutable_terminal()->set_term("linux"); });
  EXPECT_EQ(given("tty-2")->order.terminal().rows(), 24U);
  EXPECT_THAT(given("tty-2")->order.environment(), testing::Contains("TERM=linux"));
}

TEST_F(ExecInputTest, OnlyATerminalHasASize) {
  begin_exec("plain-1", with_stdin);
  const auto resized = directory().resize_exec_terminal("plain-1", {.rows = 1, .columns = 1});
  EXPECT_EQ(resized.error().reason(), reason::kExecHasNoTerminal);
  ASSERT_TRUE(directory().signal_exec("plain-1", 10).has_value());
  EXPECT_EQ(wait_order("plain-1").signal_exec().number(), 10U);
}

TEST_F(ExecInputTest, AnEndedExecTakesNothing) {
  begin_exec("over-1", with_stdin);
  end_exec("over-1", 0);
  wait_for_end("over-1");
  const Client client;
  EXPECT_EQ(attach("over-1", client).error().reason(), reason::kExecAlreadyTerminal);
  EXPECT_EQ(directory().signal_exec("over-1", 1).error().reason(), reason::kExecAlreadyTerminal);
  EXPECT_EQ(directory().end_exec_input("never-1", nullptr).error().reason(),
            reason::kExecAlreadyTerminal);
}

TEST_F(ExecInputTest, AnExecThatEndsWhileAWriterWaitsEndsTheWait) {
  begin_exec("race-1", with_stdin);
  guests_.cut(container());
  const Client client;
  const Reply reply = begin_attach("race-1", client);
  report_end("race-1");
  run_until([&] { return reply->has_value(); });
  EXPECT_FALSE((*reply)->has_value());
}

}  // namespace
}  // namespace agbox
