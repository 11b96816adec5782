// SPDX-License-Identifier: Apache-2.0
// Copies into and out of a running container.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "base/tar/tree_counts.h"
#include "model/spec/maxima.h"
#include "unit/guestlink/link_fixture.h"

namespace agbox::guestlink {
namespace {

using testing::HasSubstr;

class FilesTest : public GuestLinkTest {
 protected:
  FilesTest() : directory_(make_and_expect_someone("s1")) {}

  // The guest of s1, which has got Go.
  awaitable<void> come_in_and_go() {
    co_await come_in(directory_);
    EXPECT_TRUE(link("s1").go(order(std::string(32, 's'))));
    const auto go = co_await guest_.receive();
    EXPECT_TRUE(go && go->has_go());
  }
  static UniqueFd pipe_end() {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const UniqueFd other(ends[1]);
    return UniqueFd(ends[0]);
  }
  static v1::ToDaemon done(std::uint64_t id, const std::string& failure = "",
                           const std::string& reason = "") {
    v1::ToDaemon message;
    v1::FilesDone* files = message.mutable_files_done();
    files->set_id(id);
    files->set_failure(failure);
    files->set_reason(reason);
    files->set_entries(3);
    files->set_bytes(5);
    files->set_notes(1);
    files->set_first_note("/x: \x1b is\na FIFO");
    return message;
  }
  static FileOrder in(const std::string& path) { return {.path = path}; }

  fs::path directory_;
};

TEST_F(FilesTest, TheGuestGetsTheOrderWithThePipeAndItsReportArrives) {
  run([&]() -> awaitable<void> {
    co_await come_in_and_go();
    const auto first =
        link("s1").transfer_files({.path = "/in", .is_content = true, .as_root = true}, pipe_end());
    const auto second = link("s1").transfer_files(
        {.direction = FileOrder::Direction::Out, .path = "/out"}, pipe_end());
    EXPECT_TRUE(first && second);
    const auto put = co_await guest_.receive();
    EXPECT_EQ(put->put_files().target(), "/in");
    EXPECT_TRUE(put->put_files().content());
    EXPECT_TRUE(put->put_files().as_root());
    const auto get = co_await guest_.receive();
    EXPECT_EQ(get->get_files().path(), "/out");
    EXPECT_FALSE(get->get_files().as_root());
    EXPECT_EQ(guest_.descriptors.size(), 2U);
    co_await guest_.send(done(get->get_files().id()));
    co_await guest_.send(done(put->put_files().id(), "/in: full\x1b", "NO_SPACE"));
    const auto out = co_await link("s1").files_report(*second);
    EXPECT_FALSE(out.value().failure);
    EXPECT_EQ(out.value().entries, 3U);
    EXPECT_EQ(out.value().bytes, 5U);
    EXPECT_EQ(out.value().notes, 1U);
    EXPECT_EQ(out.value().first_note, "/x: ? is a FIFO");
    const auto failed = co_await link("s1").files_report(*first);
    EXPECT_EQ(failed.value().failure->message(), "/in: full?");
    EXPECT_EQ(failed.value().failure->reason(), reason::kNoSpace);
  }());
}

TEST_F(FilesTest, AReasonThatNoGuestHasIsNotPassedOn) {
  run([&]() -> awaitable<void> {
    co_await come_in_and_go();
    const auto files = link("s1").transfer_files(in("/x"), pipe_end());
    co_await guest_.send(done(files.value(), "/x: no", "SANDBOX_NOT_FOUND"));
    const auto report = co_await link("s1").files_report(*files);
    EXPECT_EQ(report.value().failure->reason(), reason::kCopyFailed);
  }());
}

TEST_F(FilesTest, ALostConnectionEndsTheWait) {
  run([&]() -> awaitable<void> {
    co_await come_in_and_go();
    const auto files = link("s1").transfer_files(in("/x"), pipe_end());
    guest_.close();
    const auto report = co_await link("s1").files_report(files.value());
    EXPECT_EQ(report.error().kind(), GuestErrorKind::Silent);
  }());
}

TEST_F(FilesTest, ACancelledWaitEndsTheCopyInside) {
  run([&]() -> awaitable<void> {
    co_await come_in_and_go();
    const auto files = link("s1").transfer_files(in("/x"), pipe_end());
    EXPECT_TRUE((co_await guest_.receive())->has_put_files());
    TaskGroup waiting(io_.get_executor());
    std::optional<GuestErrorKind> ended;
    auto wait = [&]() -> awaitable<void> {
      const auto report = co_await link("s1").files_report(*files);
      ended = report.error().kind();
    };
    const Task task = waiting.spawn("wait", wait());
    co_await asio::post(io_, asio::use_awaitable);
    task.cancel();
    co_await waiting.join();
    EXPECT_EQ(ended, GuestErrorKind::Cancelled);
    const auto cancel = co_await guest_.receive();
    EXPECT_EQ(cancel->cancel_files().id(), *files);
    // Its report comes too late, and harms nothing.
    co_await guest_.send(done(*files));
    EXPECT_FALSE(co_await link("s1").ping(1ms));
    EXPECT_TRUE(link("s1").is_connected());
  }());
}

TEST_F(FilesTest, AReportOfACopyThatWasNotOrderedIsAViolation) {
  run([&]() -> awaitable<void> {
    co_await come_in_and_go();
    co_await guest_.send(done(7));
    EXPECT_FALSE(co_await guest_.receive());
    EXPECT_FALSE(link("s1").is_connected());
  }());
}

TEST_F(FilesTest, NothingIsOrderedBeforeGoOrOfAnOldGuest) {
  run([&]() -> awaitable<void> {
    EXPECT_FALSE(link("s1").transfer_files(in("/x"), pipe_end())) << "nobody is there";
    guest_.protocol_max = 1;
    co_await come_in(directory_);
    EXPECT_EQ(link("s1").transfer_files(in("/x"), pipe_end()).error().kind(),
              GuestErrorKind::Refused);
    EXPECT_TRUE(link("s1").go(order(std::string(32, 's'))));
    const auto old = link("s1").transfer_files(in("/x"), pipe_end());
    EXPECT_THAT(old.error().message(), HasSubstr("older agboxd"));
  }());
}

TEST_F(FilesTest, AGuestHasFewAtATime) {
  run([&]() -> awaitable<void> {
    co_await come_in_and_go();
    for (std::size_t i = 0; i < maxima::kFileCopiesPerSandbox; ++i) {
      EXPECT_TRUE(link("s1").transfer_files(in("/x"), pipe_end()));
    }
    EXPECT_FALSE(link("s1").transfer_files(in("/x"), pipe_end()));
  }());
}

}  // namespace
}  // namespace agbox::guestlink
