// SPDX-License-Identifier: Apache-2.0
// A client and the path of its daemon's socket, in a directory of the test's own.
#pragma once

#include <agbox/raw_client.h>
#include <gtest/gtest.h>

#include "unit/sdk/scripted_daemon.h"

namespace agbox::sdk {

class RawClientTest : public testing::Test {
 protected:
  std::filesystem::path socket() const { return temp_directory_.path() / "agboxd.sock"; }

  RawClient client(std::chrono::milliseconds timeout = std::chrono::seconds(5)) const {
    auto opened = RawClient::open({.socket = socket(), .timeout = timeout});
    EXPECT_TRUE(opened.has_value());
    return std::move(*opened);
  }

  Error ping_error() const {
    auto answer = client().ping();
    EXPECT_FALSE(answer.has_value());
    return answer ? Error{} : answer.error();
  }

  // The error that a client sees for what the daemon answered.
  Error error_for(const grpc::Status& status) {
    test::ScriptedDaemon daemon(socket());
    daemon.status = status;
    return ping_error();
  }

  test::ShortDirectory temp_directory_;
};

}  // namespace agbox::sdk
