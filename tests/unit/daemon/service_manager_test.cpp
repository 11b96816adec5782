// SPDX-License-Identifier: Apache-2.0
#include "daemon/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstring>

#include "base/unique_fd.h"
#include "unit/temp_directory.h"

namespace agbox {
namespace {

// A datagram socket as systemd's; a leading @ means an abstract name.
class Receiver {
 public:
  explicit Receiver(const std::string& name)
      : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    // reinterpret_cast: required by the socket API.
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
  }
  std::string received() {
    std::array<char, 256> text{};
    const ssize_t length = ::recv(fd_.get(), text.data(), text.size(), 0);
    return length < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(length));
  }

 private:
  UniqueFd fd_;
};

TEST(ServiceManager, GetsOneDatagram) {
  const TempDirectory directory;
  const std::string path = directory.path() / "notify";
  Receiver receiver(path);
  ServiceManager({{"NOTIFY_SOCKET", path}}, Logger()).notify("READY=1\nSTATUS=Serving");
  EXPECT_EQ(receiver.received(), "READY=1\nSTATUS=Serving");
  EXPECT_EQ(receiver.received(), "");
}

TEST(ServiceManager, CanHaveAnAbstractName) {
  const TempDirectory directory;  // for a unique name
  const std::string name = "@" + directory.path().string();
  Receiver receiver(name);
  ServiceManager({{"NOTIFY_SOCKET", name}}, Logger()).notify("STOPPING=1");
  EXPECT_EQ(receiver.received(), "STOPPING=1");
}

TEST(ServiceManager, AnAbsentOrBrokenSocketIsHarmless) {
  set_log_level(LogLevel::Error);
  ServiceManager({}, Logger()).notify("READY=1");
  ServiceManager({{"NOTIFY_SOCKET", "relative"}}, Logger()).notify("READY=1");
  ServiceManager({{"NOTIFY_SOCKET", "/nonexistent/notify"}}, Logger()).notify("READY=1");
  ServiceManager({{"NOTIFY_SOCKET", "/" + std::string(200, 'x')}}, Logger()).notify("READY=1");
  set_log_level(LogLevel::Info);
}

}  // namespace
}  // namespace agbox
