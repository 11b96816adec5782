// SPDX-License-Identifier: Apache-2.0
#include "guest/daemon_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <string>
#include <vector>

#include "guestwire/place.h"
#include "unit/temp_directory.h"

namespace agbox::guest {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// A socket under the name of the daemon's, whose queue takes one connection.
class DaemonLinkTest : public testing::Test {
 protected:
  DaemonLinkTest() {
    const std::string path = directory_.path() / guestwire::kSocketName;
    address_.sun_family = AF_UNIX;
    path.copy(address_.sun_path, sizeof address_.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), address(), sizeof address_), 0);
    EXPECT_EQ(::listen(listener_.get(), 0), 0);
  }

  static UniqueFd new_socket() {
    return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  // sockaddr is the generic address type of the C API.
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }
  // How long the guest waits after an attempt.
  static steady_clock::duration wait_of(DaemonLink& link) {
    const auto before = steady_clock::now();
    Watches watches;
    link.collect(watches);
    EXPECT_TRUE(watches.wake_at);
    return watches.wake_at.value_or(before) - before;
  }

  TempDirectory directory_;
  UniqueFd listener_ = new_socket();
  sockaddr_un address_{};
};

TEST_F(DaemonLinkTest, AQueueThatIsFullIsTriedAgainSoonAndNotTooOften) {
  const UniqueFd other = new_socket();
  ASSERT_EQ(::connect(other.get(), address(), sizeof address_), 0) << "it takes the only place";
  auto link = DaemonLink::open(directory_.path().c_str(), {.hello = {}, .on_message = {}});
  ASSERT_TRUE(link) << link.error().message();
  for (const auto expected : {20ms, 40ms, 80ms, 160ms, 160ms}) {
    const auto wait = wait_of(*link);
    EXPECT_GE(wait, expected);
    EXPECT_LT(wait, expected + 1s) << "this test may be suspended, but 2 s is for another problem";
    // Nothing reports when there is a place: the next attempt is made when its time has come.
    Watches watches;
    watches.wake(steady_clock::now() + wait);
    wait_and_serve(watches);
  }
}

TEST_F(DaemonLinkTest, WhereNoOneListensTheGuestWaitsForASocket) {
  listener_.reset();
  auto link = DaemonLink::open(directory_.path().c_str(), {.hello = {}, .on_message = {}});
  ASSERT_TRUE(link) << link.error().message();
  EXPECT_GE(wait_of(*link), 250ms);
}

}  // namespace
}  // namespace agbox::guest
