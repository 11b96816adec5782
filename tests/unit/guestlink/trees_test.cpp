// SPDX-License-Identifier: Apache-2.0
// Trees that a guest unpacks before Go.
#include <fcntl.h>
#include <unistd.h>

#include "unit/guestlink/link_fixture.h"

namespace agbox::guestlink {
namespace {

class TreesTest : public GuestLinkTest {
 protected:
  TreesTest() : directory_(make_and_expect_someone("s1")) {}

  // The reading end of a pipe with some bytes in it.
  static UniqueFd stream(std::string_view bytes) {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd writing(ends[1]);
    EXPECT_EQ(::write(writing.get(), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
    return UniqueFd(ends[0]);
  }
  static v1::ToDaemon received(std::uint64_t id, const std::string& failure = "") {
    v1::ToDaemon message;
    message.mutable_tree_received()->set_id(id);
    message.mutable_tree_received()->set_failure(failure);
    message.mutable_tree_received()->set_entries(3);
    message.mutable_tree_received()->set_bytes(5);
    return message;
  }

  fs::path directory_;
};

TEST_F(TreesTest, TheGuestGetsThePipeAndItsReportArrives) {
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(link("s1").receive_tree({.target = "/t"}, stream("x"))) << "nobody is there";
    co_await come_in(directory_);
    const auto first = link("s1").receive_tree({.target = "/t"}, stream("tar"));
    const auto second = link("s1").receive_tree(
        {.target = "/f\xff", .is_single_file = true, .is_outside_mounts = true}, stream("file"));
    EXPECT_TRUE(first && second);
    const auto order = co_await guest_.receive();
    EXPECT_EQ(order->receive_tree().target(), "/t");
    EXPECT_FALSE(order->receive_tree().single_file());
    EXPECT_FALSE(order->receive_tree().outside_mounts());
    std::array<char, 8> bytes{};
    EXPECT_EQ(::read(guest_.descriptors.at(0).get(), bytes.data(), bytes.size()), 3);
    const auto other = co_await guest_.receive();
    EXPECT_EQ(other->receive_tree().target(), "/f\xff");
    EXPECT_TRUE(other->receive_tree().single_file());
    EXPECT_TRUE(other->receive_tree().outside_mounts());
    // In another order than they were sent.
    co_await guest_.send(received(other->receive_tree().id(), "/f: \x1b[2Jno space"));
    co_await guest_.send(received(order->receive_tree().id()));
    const auto failed = co_await link("s1").tree_report(*second, within(5s));
    EXPECT_EQ(failed.value().failure, "/f: ?[2Jno space");
    const auto report = co_await link("s1").tree_report(*first, within(5s));
    EXPECT_EQ(report.value().failure, "");
    EXPECT_EQ(report.value().entries, 3U);
    EXPECT_EQ(report.value().bytes, 5U);
  }());
}

TEST_F(TreesTest, ALostConnectionEndsTheWait) {
  run([&]() -> awaitable<void> {
    co_await come_in(directory_);
    const auto tree = link("s1").receive_tree({.target = "/t"}, stream("x"));
    guest_.close();
    const auto report = co_await link("s1").tree_report(tree.value(), within(20s));
    EXPECT_EQ(report.error().kind(), GuestErrorKind::Silent);
  }());
}

TEST_F(TreesTest, AGuestThatDoesNotReportIsSilent) {
  run([&]() -> awaitable<void> {
    co_await come_in(directory_);
    const auto tree = link("s1").receive_tree({.target = "/t"}, stream("x"));
    const auto report = co_await link("s1").tree_report(tree.value(), within(1ms));
    EXPECT_EQ(report.error().kind(), GuestErrorKind::Silent);
    // What comes too late harms nothing.
    co_await guest_.send(received(tree.value()));
    EXPECT_FALSE(co_await link("s1").ping(1ms));
    EXPECT_TRUE(link("s1").is_connected());
  }());
}

TEST_F(TreesTest, AReportOfATreeThatWasNotSentIsAViolation) {
  run([&]() -> awaitable<void> {
    co_await come_in(directory_);
    co_await guest_.send(received(7));
    EXPECT_FALSE(co_await guest_.receive());
    EXPECT_FALSE(link("s1").is_connected());
  }());
}

TEST_F(TreesTest, NothingIsSentAfterGo) {
  run([&]() -> awaitable<void> {
    co_await come_in(directory_);
    EXPECT_TRUE(link("s1").go(order(std::string(32, 's'))));
    const auto tree = link("s1").receive_tree({.target = "/t"}, stream("x"));
    EXPECT_EQ(tree.error().kind(), GuestErrorKind::Refused);
  }());
}

}  // namespace
}  // namespace agbox::guestlink
