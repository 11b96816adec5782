// SPDX-License-Identifier: Apache-2.0
#include "paths/engine_endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace agbox {
namespace {

using testing::HasSubstr;

TEST(EngineSocket, IsTheDefaultOrDockerHost) {
  EXPECT_EQ(resolve_engine_socket({}), "/var/run/docker.sock");
  EXPECT_EQ(resolve_engine_socket({{"DOCKER_HOST", ""}}), "/var/run/docker.sock");
  EXPECT_EQ(resolve_engine_socket({{"DOCKER_HOST", "unix:///run/x.sock"}}), "/run/x.sock");
}

TEST(EngineSocket, RemoteEnginesAreRefusedWithTheRemedy) {
  for (const std::string host : {"tcp://10.0.0.1:2375", "ssh://me@host", "npipe:////./pipe/x",
                                 "unix://relative", "unix://", "/run/x.sock"}) {
    const auto socket = resolve_engine_socket({{"DOCKER_HOST", host}});
    ASSERT_FALSE(socket) << host;
    EXPECT_THAT(socket.error().message(), HasSubstr("DOCKER_HOST is " + host));
  }
  EXPECT_THAT(resolve_engine_socket({{"DOCKER_HOST", "unix:///" + std::string(200, 'x')}})
                  .error()
                  .message(),
              HasSubstr("limited to 107 bytes"));
}

}  // namespace
}  // namespace agbox
