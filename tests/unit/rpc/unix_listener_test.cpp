// SPDX-License-Identifier: Apache-2.0
#include "rpc/unix_listener.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "unit/temp_directory.h"

namespace agbox {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using testing::HasSubstr;

sockaddr_un address_of(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

// reinterpret_cast in both: required by the socket API.
UniqueFd connected_to(const fs::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return {};
  }
  return fd;
}

UniqueFd bound_to(const fs::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(path);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

class UnixListenerTest : public testing::Test {
 protected:
  UnixListenerTest() { set_log_level(LogLevel::Error); }
  ~UnixListenerTest() override { set_log_level(LogLevel::Info); }

  Result<std::unique_ptr<UnixListener>> open() { return open_at(path_); }
  Result<std::unique_ptr<UnixListener>> open_at(const fs::path& path) {
    return UnixListener::open(loop_, temp_directory_.get(), path, Logger());
  }
  void accept(UnixListener& listener) {
    listener.accept([this](UniqueFd connection) { connections_.push_back(std::move(connection)); });
  }
  // Runs the loop until `count` connections came; false after some seconds.
  bool run_until_accepted(std::size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (connections_.size() < count && std::chrono::steady_clock::now() < deadline) {
      loop_.io().run_one_for(100ms);
    }
    return connections_.size() == count;
  }

  TempDirectory temp_;
  fs::path path_ = temp_.path() / "agboxd.sock";
  UniqueFd temp_directory_{::open(temp_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  ControlLoop loop_;
  std::vector<UniqueFd> connections_;
};

TEST_F(UnixListenerTest, CreatesAPrivateSocket) {
  const auto listener = open();
  ASSERT_TRUE(listener.has_value()) << listener.error().message();
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(UnixListenerTest, PassesNonBlockingConnections) {
  const auto listener = open();
  accept(**listener);
  const UniqueFd first = connected_to(path_);
  const UniqueFd second = connected_to(path_);
  ASSERT_TRUE(run_until_accepted(2));
  EXPECT_NE(::fcntl(connections_[0].get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(connections_[0].get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(UnixListenerTest, RemovesItsSocketWhenItCloses) {
  auto listener = open();
  accept(**listener);
  (*listener)->close();
  EXPECT_FALSE(fs::exists(fs::symlink_status(path_)));
  EXPECT_FALSE(connected_to(path_));
  loop_.io().run_for(1ms);  // pending operations end silently
}

TEST_F(UnixListenerTest, LeavesAReplacedSocketAlone) {
  auto listener = open();
  fs::remove(path_);
  const UniqueFd other = bound_to(path_);
  (*listener)->close();
  EXPECT_TRUE(fs::is_socket(path_));
}

TEST_F(UnixListenerTest, ReplacesTheSocketOfADeadDaemon) {
  bound_to(path_).reset();
  const auto listener = open();
  ASSERT_TRUE(listener.has_value());
  EXPECT_TRUE(connected_to(path_));
}

TEST_F(UnixListenerTest, LeavesOtherFilesAlone) {
  const fs::path target = temp_.path() / "target";
  std::ofstream(target) << "precious";
  const auto expect_refused = [&] {
    const auto listener = open();
    ASSERT_FALSE(listener.has_value());
    EXPECT_THAT(listener.error().message(),
                AllOf(HasSubstr("listen on " + path_.string()), HasSubstr("not a socket")));
  };
  fs::create_symlink(target, path_);
  expect_refused();
  EXPECT_TRUE(fs::is_symlink(path_));
  fs::remove(path_);
  std::ofstream(path_) << "file";
  expect_refused();
  EXPECT_TRUE(fs::is_regular_file(path_));
  fs::remove(path_);
  fs::create_directory(path_);
  std::ofstream(path_ / "inside") << "file";
  expect_refused();
  EXPECT_TRUE(fs::exists(path_ / "inside"));
  std::stringstream text;
  text << std::ifstream(target).rdbuf();
  EXPECT_EQ(text.str(), "precious");
}

TEST_F(UnixListenerTest, NamesTheLimitOfThePath) {
  const auto of_length = [&](std::size_t length) {
    return temp_.path() / std::string(length - temp_.path().string().size() - 1, 'x');
  };
  EXPECT_TRUE(open_at(of_length(107)).has_value());
  const auto listener = open_at(of_length(108));
  ASSERT_FALSE(listener.has_value());
  EXPECT_THAT(listener.error().message(),
              AllOf(HasSubstr("has 108 bytes, but a Unix socket's path is limited to 107"),
                    HasSubstr("XDG_RUNTIME_DIR")));
}

}  // namespace
}  // namespace agbox
