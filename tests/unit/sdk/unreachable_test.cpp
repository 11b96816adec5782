// SPDX-License-Identifier: Apache-2.0
// What a client says where nobody answers on the daemon's socket.
#include <agbox/raw_client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>

#include "base/unique_fd.h"
#include "socket_diagnosis.h"
#include "unit/sdk/raw_client_fixture.h"

namespace agbox::sdk {
namespace {

using test::ScriptedDaemon;
using testing::HasSubstr;

class Unreachable : public RawClientTest {};

UniqueFd listen_at(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.string().size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The socket interface takes every kind of address as a sockaddr.
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  EXPECT_EQ(::bind(fd.get(), generic, sizeof(address)), 0);
  EXPECT_EQ(::listen(fd.get(), 8), 0);
  return fd;
}

// The socket file of a process that listened once and was killed.
void leave_stale_socket(const std::filesystem::path& path) {
  listen_at(path).reset();
}

TEST_F(Unreachable, AMissingSocketMeansThatNoDaemonRuns) {
  const Error error = ping_error();
  EXPECT_EQ(error.kind, ErrorKind::Unreachable);
  EXPECT_EQ(error.socket, (UnreachableSocket{socket(), SocketProblem::Missing, false}));
  EXPECT_THAT(error.message, HasSubstr("agboxd is not running"));
  EXPECT_THAT(error.message, HasSubstr(socket().string()));
  EXPECT_THAT(error.message, HasSubstr("agbox daemon start"));
}

TEST_F(Unreachable, AStaleSocketIsToldFromAMissingOne) {
  leave_stale_socket(socket());
  const Error error = ping_error();
  EXPECT_EQ(error.kind, ErrorKind::Unreachable);
  EXPECT_EQ(error.socket, (UnreachableSocket{socket(), SocketProblem::NotListening, true}));
  EXPECT_THAT(error.message, HasSubstr("no process listens on"));
}

TEST_F(Unreachable, AFileInPlaceOfTheSocketIsNamed) {
  std::ofstream(socket()) << "not a socket";
  const Error error = ping_error();
  EXPECT_EQ(error.socket, (UnreachableSocket{socket(), SocketProblem::NotASocket, true}));
  EXPECT_THAT(error.message, HasSubstr("is not a socket"));
}

TEST_F(Unreachable, ASocketOfSomebodyElseIsPermissionDenied) {
  // Root may connect everywhere: a child becomes somebody else. It asks the diagnosis alone,
  // because gRPC does not survive a fork.
  leave_stale_socket(socket());
  ASSERT_EQ(::chmod(temp_directory_.path().c_str(), 0), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(10);
    const Error error = unreachable_error(socket(), "");
    if (error.kind != ErrorKind::Unreachable) ::_exit(11);
    if (error.socket->problem != SocketProblem::PermissionDenied) ::_exit(12);
    ::_exit(error.message.contains("Permission denied") ? 0 : 13);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(::chmod(temp_directory_.path().c_str(), 0700), 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Unreachable, AListenerThatHangsUpIsALostConnection) {
  const UniqueFd listener = listen_at(socket());
  // Ends when shutdown() below makes accept fail.
  std::thread hangs_up([&] {
    while (true) {
      const UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer) return;
    }
  });
  const Error error = ping_error();
  ::shutdown(listener.get(), SHUT_RDWR);
  hangs_up.join();
  EXPECT_EQ(error.kind, ErrorKind::Unreachable);
  ASSERT_TRUE(error.socket.has_value());
  EXPECT_EQ(error.socket->problem, SocketProblem::ConnectionLost);
  EXPECT_THAT(error.message, HasSubstr("lost the connection"));
}

TEST_F(Unreachable, APathThatIsTooLongOrRelativeIsRefusedAtOnce) {
  const auto too_long = RawClient::open({.socket = "/" + std::string(107, 'a')});
  ASSERT_FALSE(too_long.has_value());
  EXPECT_EQ(too_long.error().socket->problem, SocketProblem::PathTooLong);
  EXPECT_THAT(too_long.error().message, HasSubstr("108 bytes"));

  EXPECT_TRUE(RawClient::open({.socket = "/" + std::string(106, 'a')}).has_value());

  const auto relative = RawClient::open({.socket = "agboxd.sock"});
  ASSERT_FALSE(relative.has_value());
  EXPECT_EQ(relative.error().kind, ErrorKind::NoSocketPath);
}

TEST_F(Unreachable, OddCharactersInThePathReachNoResolver) {
  const auto odd = temp_directory_.path() / "a b%41?c#d[e]é";
  // The daemon listens under a plain name; the odd one is a way to the same directory.
  const auto plain = temp_directory_.path() / "plain";
  std::filesystem::create_directory(plain);
  std::filesystem::create_directory_symlink(plain, odd);
  ScriptedDaemon daemon(plain / "s");
  daemon.ping_response.set_daemon("agboxd");

  const auto raw = RawClient::open({.socket = odd / "s"});
  ASSERT_TRUE(raw.has_value());
  const auto answer = raw->ping();
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->daemon(), "agboxd");
}

}  // namespace
}  // namespace agbox::sdk
