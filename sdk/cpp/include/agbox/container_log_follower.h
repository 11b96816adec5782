// SPDX-License-Identifier: Apache-2.0
// Reads what a container of a sandbox printed, in order and exactly once, across restarts of the
// daemon: when the connection breaks, it continues after the last byte that it has seen.
//
//   v1::ReadContainerLogsRequest request;
//   request.set_sandbox_id("app-1");
//   request.set_container("db");
//   request.set_follow(true);
//   ContainerLogFollower log(client, request);
//   while (auto piece = log.next()) {
//     if (!*piece) break;  // the container is removed
//     show((*piece)->stream(), (*piece)->data());
//   }
#pragma once

#include <agbox/raw_client.h>
#include <agbox/reconnect_backoff.h>

#include <functional>
#include <optional>
#include <stop_token>

namespace agbox::sdk {

class ContainerLogFollower {
 public:
  // The client must outlive the follower.
  ContainerLogFollower(const RawClient& client, v1::ReadContainerLogsRequest request,
                       FollowOptions options = {});

  // Blocks until the next piece, which has data; nullopt at the end.
  Result<std::optional<v1::ReadContainerLogsResponse>> next();

 private:
  void open();

  const RawClient& client_;
  v1::ReadContainerLogsRequest request_;
  ReconnectBackoff backoff_;
  std::optional<ContainerLogStream> stream_;
  // Declared after the stream that it cancels, so that it is destroyed first.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace agbox::sdk
