// SPDX-License-Identifier: Apache-2.0
#include "guest/message_socket.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace agbox::guest {
namespace {

int open_descriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& fd : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

ino_t inode(int fd) {
  struct stat status{};
  EXPECT_EQ(::fstat(fd, &status), 0);
  return status.st_ino;
}

class MessageSocketTest : public testing::Test {
 protected:
  MessageSocketTest() {
    std::array<int, 2> ends;
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    daemon_.reset(ends[0]);
    guest_.emplace(UniqueFd(ends[1]));
  }

  static std::string start_exec(const std::string& id, std::size_t size = 1) {
    v1::ToGuest message;
    message.mutable_start_exec()->set_exec_id(id);
    message.mutable_start_exec()->add_command(std::string(size, 'x'));
    return guestwire::frame(message);
  }
  static std::string ping() {
    v1::ToGuest message;
    message.mutable_ping()->set_id(1);
    return guestwire::frame(message);
  }

  void send(std::string_view bytes, const std::vector<int>& descriptors = {}) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(4 * sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(daemon_.get(), &message, 0), static_cast<ssize_t>(bytes.size()));
  }

  // Until nothing is pending. Each StartExec takes its pair, as in the guest.
  void receive() {
    pollfd polled{guest_->fd(), POLLIN, 0};
    while (!guest_->is_broken() && ::poll(&polled, 1, 0) > 0) {
      guest_->read_some([this](v1::ToGuest& message) {
        if (!message.has_start_exec()) return true;
        auto pair = guest_->take_descriptors();
        if (!pair) return false;
        received_.emplace_back(message.start_exec().exec_id(), std::move(*pair));
        return true;
      });
    }
  }

  UniqueFd daemon_;
  std::optional<MessageSocket> guest_;
  std::vector<std::pair<std::string, MessageSocket::DescriptorPair>> received_;
  UniqueFd one_{::open("/dev/null", O_RDONLY | O_CLOEXEC)};
  UniqueFd other_{::open("/dev/zero", O_RDONLY | O_CLOEXEC)};
};

TEST_F(MessageSocketTest, DescriptorsArriveWithTheirMessage) {
  send(start_exec("a"), {one_.get(), other_.get()});
  receive();
  ASSERT_EQ(received_.size(), 1U);
  EXPECT_EQ(inode(received_[0].second.first.get()), inode(one_.get()));
  EXPECT_EQ(inode(received_[0].second.second.get()), inode(other_.get()));
  EXPECT_EQ(::fcntl(received_[0].second.first.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(MessageSocketTest, EachMessageGetsItsOwnDescriptorsIndependentOfChunks) {
  for (int i = 0; i < 8; ++i) {
    const std::string bytes = start_exec(std::to_string(i), 3'000);
    const std::vector<int> pair = {i % 2 == 0 ? one_.get() : other_.get(), one_.get()};
    if (i % 3 == 0) {
      send(bytes, pair);
    } else {  // in two chunks, with another message in between
      send(bytes.substr(0, 1), pair);
      send(bytes.substr(1) + ping());
    }
  }
  receive();
  ASSERT_FALSE(guest_->is_broken());
  ASSERT_EQ(received_.size(), 8U);
  for (int i = 0; i < 8; ++i) {
    const auto& [id, pair] = received_[static_cast<std::size_t>(i)];
    EXPECT_EQ(id, std::to_string(i));
    EXPECT_EQ(inode(pair.first.get()), inode(i % 2 == 0 ? one_.get() : other_.get())) << i;
  }
}

TEST_F(MessageSocketTest, AMessageWithoutItsDescriptorsBreaksTheConnection) {
  send(start_exec("a"));
  receive();
  EXPECT_TRUE(guest_->is_broken());
}

TEST_F(MessageSocketTest, UnclaimedDescriptorsBreakTheConnectionAndAreClosed) {
  const int before = open_descriptors();
  send(ping(), {one_.get(), other_.get()});
  receive();
  EXPECT_TRUE(guest_->is_broken());
  guest_.reset();
  EXPECT_EQ(open_descriptors(), before - 1);
}

TEST_F(MessageSocketTest, DescriptorsOfAnIncompleteMessageAreClosed) {
  const int before = open_descriptors();
  send(start_exec("a").substr(0, 3), {one_.get(), other_.get()});
  receive();
  EXPECT_FALSE(guest_->is_broken());
  EXPECT_EQ(open_descriptors(), before + 2);
  guest_.reset();
  EXPECT_EQ(open_descriptors(), before - 1);
}

TEST_F(MessageSocketTest, OneIsTheFirstMoreThanTwoAreNoneAndTheOrderIsKept) {
  const int before = open_descriptors();
  send(start_exec("one"), {one_.get()});
  send(start_exec("three"), {one_.get(), one_.get(), one_.get()});
  send(start_exec("two"), {one_.get(), other_.get()});
  receive();
  ASSERT_EQ(received_.size(), 3U);
  EXPECT_EQ(inode(received_[0].second.first.get()), inode(one_.get()));
  EXPECT_FALSE(received_[0].second.second);
  EXPECT_EQ(inode(received_[2].second.second.get()), inode(other_.get()));
  EXPECT_EQ(open_descriptors(), before + 3 + (received_[1].second.first ? 2 : 0));
}

}  // namespace
}  // namespace agbox::guest
