// SPDX-License-Identifier: Apache-2.0
#include "guest/connection_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace agbox::guest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

using Reported = std::pair<std::uint64_t, v1::ConnectionTried::Outcome>;
Reported reported(std::uint64_t id, v1::ConnectionTried::Outcome outcome) {
  return {id, outcome};
}

// A listener on loopback that never accepts; the kernel connects as many as the backlog allows.
class Listener {
 public:
  explicit Listener(int room) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* generic = reinterpret_cast<sockaddr*>(&place);
    EXPECT_EQ(::bind(socket_.get(), generic, sizeof place), 0);
    EXPECT_EQ(::listen(socket_.get(), room), 0);
    socklen_t size = sizeof place;
    EXPECT_EQ(::getsockname(socket_.get(), generic, &size), 0);
    port_ = ntohs(place.sin_port);
  }
  std::uint16_t port() const { return port_; }
  void close() { socket_.reset(); }

 private:
  UniqueFd socket_;
  std::uint16_t port_ = 0;
};

class ConnectionProbesTest : public testing::Test {
 protected:
  void begin(std::uint64_t id, std::uint16_t port, std::uint32_t limit_ms = 5000) {
    v1::TryConnection order;
    order.set_id(id);
    order.set_address(INADDR_LOOPBACK);
    order.set_port(port);
    order.set_limit_ms(limit_ms);
    probes_.begin(order);
  }
  void run_until_told(std::size_t count) {
    while (reported_.size() < count) {
      Watches watches;
      probes_.collect(watches);
      ASSERT_FALSE(watches.watches.empty());
      wait_and_serve(watches);
      probes_.end_overdue();
    }
  }
  std::vector<Reported> reported_;
  std::string detail_;
  ConnectionProbes probes_{[this](const v1::ConnectionTried& tried) {
    reported_.emplace_back(tried.id(), tried.outcome());
    detail_ = tried.detail();
  }};
};

TEST_F(ConnectionProbesTest, ReportsConnectedAndRefused) {
  const Listener open(8);
  Listener closed(8);
  closed.close();
  begin(1, open.port());
  begin(2, closed.port());
  run_until_told(2);
  EXPECT_THAT(reported_, UnorderedElementsAre(reported(1, v1::ConnectionTried::OUTCOME_CONNECTED),
                                              reported(2, v1::ConnectionTried::OUTCOME_REFUSED)));
}

TEST_F(ConnectionProbesTest, ATimeoutIsReportedAsUnknown) {
  const Listener full(0);
  begin(1, full.port());
  run_until_told(1);
  begin(2, full.port(), 60);  // backlog full: the kernel does not answer
  begin(3, full.port(), 50);
  run_until_told(3);
  EXPECT_THAT(reported_, UnorderedElementsAre(reported(1, v1::ConnectionTried::OUTCOME_CONNECTED),
                                              reported(3, v1::ConnectionTried::OUTCOME_UNKNOWN),
                                              reported(2, v1::ConnectionTried::OUTCOME_UNKNOWN)));
  EXPECT_EQ(detail_, "timed out");
}

TEST_F(ConnectionProbesTest, CancelledProbesAreNotReported) {
  const Listener open(8);
  begin(1, open.port());
  probes_.cancel_all();
  Watches watches;
  probes_.collect(watches);
  EXPECT_THAT(watches.watches, IsEmpty());
  begin(2, open.port());
  run_until_told(1);
  EXPECT_THAT(reported_, ElementsAre(reported(2, v1::ConnectionTried::OUTCOME_CONNECTED)));
}

TEST_F(ConnectionProbesTest, ConcurrentProbesAreLimited) {
  const Listener open(64);
  for (std::uint64_t id = 1; id <= 17; ++id) begin(id, open.port());
  EXPECT_THAT(reported_, ElementsAre(reported(17, v1::ConnectionTried::OUTCOME_UNKNOWN)));
  EXPECT_EQ(detail_, "too many concurrent attempts");
}

}  // namespace
}  // namespace agbox::guest
