// SPDX-License-Identifier: Apache-2.0
// Real files, a real inotify instance, and writers that do what a command or an enemy does.
#include "execlog/exec_output.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "execlog/log_file.h"
#include "model/reasons.h"
#include "unit/file_lease.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Reads on like a client that takes whatever there is.
class Reader {
 public:
  Reader(LogWatch& watch, ExecOutputCut cut)
      : output_(std::in_place, watch, std::move(cut), [this] {
          ++news_;
          read();
        }) {}
  Reader(const Reader&) = delete;

  void read() {
    while (output_ && !is_stopped_) {
      auto next = output_->next();
      if (auto* chunk = std::get_if<ExecOutput::Chunk>(&next)) {
        EXPECT_EQ(chunk->offset, begin_ + text_.size());
        text_.append(chunk->bytes.get(), chunk->size);
        ++pieces_;
      } else if (auto* end = std::get_if<ExecOutput::End>(&next)) {
        outcome_ = end->outcome;
        output_.reset();
      } else {
        return;
      }
    }
  }

  void starting_at(std::uint64_t offset) { begin_ = offset; }
  void stop() { is_stopped_ = true; }
  void leave() { output_.reset(); }
  void exec_ended() { output_->exec_ended(); }

  bool has_ended() const { return outcome_.has_value(); }
  bool is_well() const { return outcome_ && *outcome_; }
  Error error() const {
    return has_ended() && !*outcome_ ? outcome_->error() : Error(reason::kInternal, "none");
  }
  const std::string& text() const { return text_; }
  int news() const { return news_; }
  int pieces() const { return pieces_; }

 private:
  std::optional<ExecOutput> output_;
  std::uint64_t begin_ = 0;
  bool is_stopped_ = false;
  int news_ = 0;
  int pieces_ = 0;
  std::string text_;
  std::optional<Result<>> outcome_;
};

class ExecOutputTest : public testing::Test {
 protected:
  ExecOutputTest() {
    EXPECT_EQ(::mkdir((root_.path() / "box-1").c_str(), 0700), 0);
    append("");
  }

  std::filesystem::path path() const { return root_.path() / "box-1/exec-1.stdout.log"; }

  ExecOutputCut cut(bool follow = false, std::uint64_t offset = 0) const {
    return {.exec_id = "exec-1",
            .stream = "stdout",
            .root = root_.path(),
            .path = path(),
            .offset = offset,
            .follow = follow};
  }

  std::unique_ptr<Reader> reader(ExecOutputCut cut) {
    const std::uint64_t offset = cut.offset;
    auto made = std::make_unique<Reader>(*watch_, std::move(cut));
    made->starting_at(offset);
    made->read();
    return made;
  }
  std::unique_ptr<Reader> reader(bool follow = false, std::uint64_t offset = 0) {
    return reader(cut(follow, offset));
  }

  // As the runner does: appended, by somebody else than the reader.
  void append(std::string_view text) const {
    const UniqueFd fd(::open(path().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(fd);
    ASSERT_EQ(::write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  // Handles what inotify says until it is so.
  testing::AssertionResult wait_until(const std::function<bool()>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (!is_so()) {
      if (io_.run_one_until(deadline) == 0) return testing::AssertionFailure() << "in vain";
    }
    return testing::AssertionSuccess();
  }

  TempDirectory root_;
  boost::asio::io_context io_;
  std::shared_ptr<LogWatch> watch_ = LogWatch::make(io_.get_executor());
};

TEST_F(ExecOutputTest, WithoutFollowingItEndsWithWhatIsThere) {
  append(std::string("a\0b\xff\n", 5));
  const auto all = reader();
  EXPECT_TRUE(all->is_well());
  EXPECT_EQ(all->text(), std::string("a\0b\xff\n", 5));
  EXPECT_EQ(reader(false, 3)->text(), "\xff\n");
  EXPECT_TRUE(reader(false, 5)->is_well());
  EXPECT_EQ(watch_->watched_files(), 0);
}

TEST_F(ExecOutputTest, AnOffsetBeyondTheEndIsOutOfRange) {
  append("12345");
  const auto beyond = reader(false, 6);
  EXPECT_EQ(beyond->error().reason(), reason::kExecOutputOutOfRange);
  EXPECT_EQ(beyond->error().message(),
            "offset 6 is beyond the 5 bytes that exec exec-1 wrote to its stdout");
  EXPECT_EQ(beyond->error().metadata(),
            (Error::Metadata{{"exec_id", "exec-1"}, {"offset", "6"}, {"size", "5"}}));
}

TEST_F(ExecOutputTest, AFollowerGetsWhatIsAppendedUntilTheExecEnds) {
  append("one ");
  const auto follower = reader(true);
  EXPECT_EQ(follower->text(), "one ");
  EXPECT_FALSE(follower->has_ended());
  append("two ");
  EXPECT_TRUE(wait_until([&] { return follower->text() == "one two "; }));
  // Its last bytes are in the file before its end is known.
  append("three");
  follower->exec_ended();
  EXPECT_TRUE(follower->is_well());
  EXPECT_EQ(follower->text(), "one two three");
  EXPECT_EQ(watch_->watched_files(), 0);
}

TEST_F(ExecOutputTest, AFollowerWaitsForItsOffset) {
  append("1234");
  const auto follower = reader(true, 6);
  append("56");
  EXPECT_TRUE(wait_until([&] { return follower->news() == 1; }));
  EXPECT_EQ(follower->text(), "");
  append("789");
  EXPECT_TRUE(wait_until([&] { return follower->text() == "789"; }));
  const auto in_vain = reader(true, 100);
  in_vain->exec_ended();
  EXPECT_EQ(in_vain->error().reason(), reason::kExecOutputOutOfRange);
}

TEST_F(ExecOutputTest, WhatBackgroundChildrenWriteLaterIsReadByOffset) {
  append("12345");
  auto over = cut(true);
  over.is_over = true;
  EXPECT_EQ(reader(over)->text(), "12345");
  append("late");
  over.offset = 5;
  EXPECT_EQ(reader(over)->text(), "late");
}

// A child that never stops writing must not keep a reader for ever.
TEST_F(ExecOutputTest, AfterTheEndOfTheExecTheFirstLookDecides) {
  append(std::string(1 << 20, 'x'));
  auto over = cut(true);
  over.is_over = true;
  ExecOutput output(*watch_, over, [] {});
  std::size_t size = 0;
  while (true) {
    auto next = output.next();
    const auto* chunk = std::get_if<ExecOutput::Chunk>(&next);
    if (chunk == nullptr) break;
    size += chunk->size;
    append(std::string(chunk->size, 'y'));
  }
  EXPECT_EQ(size, 1 << 20);
}

TEST_F(ExecOutputTest, TheEndAfterEverythingWasRead) {
  append("all");
  const auto follower = reader(true);
  follower->exec_ended();
  EXPECT_TRUE(follower->is_well());
  EXPECT_EQ(follower->text(), "all");
}

TEST_F(ExecOutputTest, ReadersOfOneFileShareOneWatch) {
  std::vector<std::unique_ptr<Reader>> readers;
  readers.reserve(10);
  for (int i = 0; i < 10; ++i) readers.push_back(reader(true));
  EXPECT_EQ(watch_->watched_files(), 1);
  append("for all");
  for (const auto& each : readers) {
    EXPECT_TRUE(wait_until([&] { return each->text() == "for all"; }));
  }
  readers.resize(1);
  EXPECT_TRUE(wait_until([&] { return watch_->watched_files() == 1; })) << "it waits again";
  readers.clear();
  EXPECT_EQ(watch_->watched_files(), 0);
  append("for nobody");
  io_.poll();
}

TEST_F(ExecOutputTest, ShortAnswersAreReadAtOnceThoughTheyFollowEachOther) {
  const auto follower = reader(true);
  auto fastest = std::chrono::steady_clock::duration::max();
  for (std::size_t i = 1; i <= 10; ++i) {
    const auto began = std::chrono::steady_clock::now();
    append("x");
    EXPECT_TRUE(wait_until([&] { return follower->text().size() == i; }));
    // The first one follows a silence anyway.
    if (i > 1) fastest = std::min(fastest, std::chrono::steady_clock::now() - began);
  }
  EXPECT_EQ(follower->pieces(), 10);
  EXPECT_LT(fastest, 4ms) << "each waited for the end of its window";
}

TEST_F(ExecOutputTest, ManyShortWritesGoOutTogether) {
  const auto follower = reader(true);
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    append("x");
    io_.poll();
  }
  EXPECT_TRUE(wait_until([&] { return follower->text().size() == 1000; }));
  const auto time = std::chrono::steady_clock::now() - began;
  // However many writes there were.
  EXPECT_LE(follower->pieces(), 16 * (time / 5ms + 1));
}

TEST_F(ExecOutputTest, LargeWritesThatComeCloseTogetherGoOutTogether) {
  const auto follower = reader(true);
  const std::string large(4096, 'x');
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    append(large);
    io_.poll();
  }
  EXPECT_TRUE(wait_until([&] { return follower->text().size() == 1000 * large.size(); }));
  const auto time = std::chrono::steady_clock::now() - began;
  // The first of a window is read at once, and at its end what came since, in chunks of 128 KiB.
  EXPECT_LE(follower->pieces(), time / 5ms + 1 + 32);
}

// Its window is full, so that it waits for the end of it.
std::string fill_window() {
  return std::string(4096, 'x');
}

TEST_F(ExecOutputTest, AThrottledReaderIsNotifiedOfTheEndAtOnce) {
  const auto follower = reader(true);
  append(fill_window());
  EXPECT_TRUE(wait_until([&] { return follower->text() == fill_window(); }));
  append("last");
  follower->exec_ended();
  EXPECT_TRUE(follower->is_well());
  EXPECT_EQ(follower->text(), fill_window() + "last");
}

TEST_F(ExecOutputTest, AReaderMayLeaveWhileItIsThrottled) {
  const auto leaving = reader(true);
  append(fill_window());
  EXPECT_TRUE(wait_until([&] { return leaving->text() == fill_window(); }));
  leaving->leave();
  const auto staying = reader(true);
  append("more");
  EXPECT_TRUE(wait_until([&] { return staying->text() == fill_window() + "more"; }));
}

TEST_F(ExecOutputTest, AReaderThatStoppedIsNotWokenAgainAndAgain) {
  const auto stopped = reader(true);
  stopped->stop();
  append("a");
  EXPECT_TRUE(wait_until([&] { return stopped->news() == 1; }));
  for (int i = 0; i < 100; ++i) append("b");
  io_.poll();
  EXPECT_EQ(stopped->news(), 1) << "a watch fires once, and only a reader at the end arms one";
}

TEST_F(ExecOutputTest, AReaderMayLeaveWhileItWaits) {
  const auto leaving = reader(true);
  const auto staying = reader(true);
  leaving->leave();
  append("x");
  EXPECT_TRUE(wait_until([&] { return staying->text() == "x"; }));
  EXPECT_EQ(leaving->news(), 0);
}

TEST_F(ExecOutputTest, NothingIsMissedOrDoubledWhileAWriterIsAtWork) {
  constexpr int kWrites = 4000;
  std::string written;
  for (int i = 0; i < kWrites; ++i)
    written += std::string(static_cast<std::size_t>(i % 700), static_cast<char>(i));
  std::vector<std::unique_ptr<Reader>> readers;
  readers.reserve(10);
  for (int i = 0; i < 10; ++i) readers.push_back(reader(true));
  std::thread writer([&] {
    const UniqueFd fd(::open(path().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    std::string_view left = written;
    for (int i = 0; i < kWrites; ++i) {
      const auto size = static_cast<std::size_t>(i % 700);
      EXPECT_EQ(::write(fd.get(), left.data(), size), static_cast<ssize_t>(size));
      left.remove_prefix(size);
    }
  });
  for (const auto& each : readers) {
    EXPECT_TRUE(wait_until([&] { return each->text().size() == written.size(); }));
    EXPECT_TRUE(each->text() == written);
  }
  writer.join();
}

TEST_F(ExecOutputTest, TheLimitCapsWhatIsRead) {
  append("123456789");
  auto limited = cut(true);
  limited.limit_bytes = 4;
  limited.is_over = true;
  EXPECT_EQ(reader(limited)->text(), "1234");
  // Without blocks behind it: what a hostile guest could make of its descriptor.
  ASSERT_EQ(::truncate(path().c_str(), 1LL << 40), 0);
  EXPECT_EQ(reader(limited)->text(), "1234");
}

TEST_F(ExecOutputTest, AFileThatGotShorterIsAnError) {
  append("123456789");
  const auto follower = reader(true);
  ASSERT_EQ(::truncate(path().c_str(), 3), 0);
  EXPECT_TRUE(wait_until([&] { return follower->has_ended(); }));
  EXPECT_EQ(follower->error().reason(), reason::kExecOutputLost);
  EXPECT_EQ(follower->error().message(),
            "exec exec-1: its stdout log was truncated from 9 to 3 bytes");
}

TEST_F(ExecOutputTest, AFileThatGotShorterInTheMiddleIsAnError) {
  append(std::string(1 << 20, 'x'));
  ExecOutput output(*watch_, cut(true), [] {});
  ASSERT_TRUE(std::holds_alternative<ExecOutput::Chunk>(output.next()));
  ASSERT_EQ(::truncate(path().c_str(), 3), 0);
  const auto next = output.next();
  ASSERT_TRUE(std::holds_alternative<ExecOutput::End>(next));
  EXPECT_THAT(std::get<ExecOutput::End>(next).outcome.error().message(),
              HasSubstr("it was truncated while it was read"));
}

TEST_F(ExecOutputTest, AFileThatIsRemovedEndsItsFollowers) {
  append("x");
  const auto follower = reader(true);
  std::filesystem::remove(path());
  EXPECT_TRUE(wait_until([&] { return follower->has_ended(); }));
  EXPECT_EQ(follower->error().reason(), reason::kExecOutputLost);
  EXPECT_THAT(follower->error().message(),
              HasSubstr("exec-1.stdout.log: it was removed while it was read"));
}

TEST_F(ExecOutputTest, AFileInItsPlaceIsNotReadInstead) {
  append("true");
  const auto follower = reader(true);
  std::filesystem::rename(path(), root_.path() / "box-1/moved");
  append("false");
  io_.poll();
  EXPECT_EQ(follower->text(), "true");
}

class UnsafeLog : public ExecOutputTest {
 protected:
  void expect_refused(const std::string& why) {
    const auto refused = reader(true);
    ASSERT_TRUE(refused->has_ended());
    EXPECT_EQ(refused->error().reason(), reason::kExecOutputLost);
    EXPECT_THAT(refused->error().message(), HasSubstr(why));
    EXPECT_EQ(refused->text(), "");
  }
  void put_secret_beside() {
    append("secret");
    std::filesystem::rename(path(), root_.path() / "secret");
  }
};

TEST_F(UnsafeLog, ASymbolicLink) {
  put_secret_beside();
  std::filesystem::create_symlink("../secret", path());
  expect_refused("symbolic link");
}

TEST_F(UnsafeLog, ASymbolicLinkOnTheWay) {
  std::filesystem::rename(root_.path() / "box-1", root_.path() / "box-2");
  std::filesystem::create_symlink("box-2", root_.path() / "box-1");
  expect_refused("symbolic link");
}

TEST_F(UnsafeLog, AHardLink) {
  std::filesystem::create_hard_link(path(), root_.path() / "second");
  expect_refused("it has 2 names");
}

TEST_F(UnsafeLog, AHardLinkMadeLater) {
  const auto follower = reader(true);
  std::filesystem::create_hard_link(path(), root_.path() / "second");
  EXPECT_TRUE(wait_until([&] { return follower->has_ended(); }));
  EXPECT_THAT(follower->error().message(), HasSubstr("it has 2 names"));
}

TEST_F(UnsafeLog, AFifoThatWouldBlock) {
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  expect_refused("not a regular file");
}

TEST_F(UnsafeLog, OneUnderALeaseIsBusyUntilItIsLetGo) {
  append("text");
  {
    const FileLease lease(path());
    const auto refused = reader();
    ASSERT_TRUE(refused->has_ended());
    EXPECT_EQ(refused->error().reason(), reason::kExecOutputBusy);
    EXPECT_THAT(refused->error().message(),
                HasSubstr("exec-1.stdout.log: a process holds a lease"));
  }
  EXPECT_EQ(reader()->text(), "text");
}

// The log is as it should be; it is the process that is full.
TEST_F(UnsafeLog, OneThatNoDescriptorIsLeftForIsNotLost) {
  append("text");
  // Once while there are some: the sanitizer needs two itself where it sees a type for the first
  // time.
  ASSERT_FALSE(LogFile::open(root_.path(), root_.path() / "nothing").has_value());
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto next = static_cast<rlim_t>(UniqueFd(::open("/", O_PATH | O_CLOEXEC)).get());
  for (const rlim_t most : {next, next + 1}) {  // none for the root, none for the file
    SCOPED_TRACE(most - next);
    const rlimit tight{.rlim_cur = most, .rlim_max = limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
    const auto refused = LogFile::open(root_.path(), path());
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().reason(), reason::kResourceExhausted);
    EXPECT_THAT(refused.error().message(),
                AllOf(HasSubstr("exec-1.stdout.log: Too many open files"), HasSubstr("raise")));
  }
  EXPECT_EQ(reader()->text(), "text");
}

TEST_F(UnsafeLog, ADirectory) {
  std::filesystem::remove(path());
  std::filesystem::create_directory(path());
  expect_refused("not a regular file");
}

TEST_F(UnsafeLog, AMissingFile) {
  std::filesystem::remove(path());
  expect_refused("No such file or directory");
}

TEST_F(UnsafeLog, APathOutsideTheRoot) {
  auto outside = cut();
  outside.root = root_.path() / "box-1";
  for (const std::string path : {"/etc/passwd", "box-1/../../etc/passwd"}) {
    outside.path = path;
    EXPECT_EQ(reader(outside)->error().reason(), reason::kExecOutputLost) << path;
  }
  outside.path = root_.path() / "box-1";
  EXPECT_EQ(reader(outside)->error().reason(), reason::kExecOutputLost);
}

// The root itself is the configuration's, and people have links there.
TEST_F(UnsafeLog, ALinkToTheRootIsFollowed) {
  append("x");
  const TempDirectory elsewhere;
  std::filesystem::create_symlink(root_.path(), elsewhere.path() / "logs");
  auto linked = cut();
  linked.root = elsewhere.path() / "logs";
  linked.path = linked.root / "box-1/exec-1.stdout.log";
  EXPECT_EQ(reader(linked)->text(), "x");
}

}  // namespace
}  // namespace agbox
