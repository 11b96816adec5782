// SPDX-License-Identifier: Apache-2.0
// Reads one output stream of an exec in order and exactly once, across restarts of the daemon: when
// the connection breaks, it continues after the last byte that it has seen.
//
//   OutputFollower output(client, exec_id, v1::OUTPUT_STREAM_STDOUT);
//   while (auto chunk = output.next()) {
//     if (!*chunk) break;  // the exec has ended
//     show(**chunk);
//   }
#pragma once

#include <agbox/raw_client.h>
#include <agbox/reconnect_backoff.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace agbox::sdk {

// Read until the exec has ended, or only what exists so far.
enum class OutputExtent { UntilExit, SoFar };

class OutputFollower {
 public:
  // The client must outlive the follower.
  OutputFollower(const RawClient& client, std::string exec_id, v1::OutputStream stream,
                 FollowOptions options = {}, OutputExtent extent = OutputExtent::UntilExit,
                 std::uint64_t offset = 0);

  // Blocks until the next chunk; nullopt at the end.
  Result<std::optional<std::string>> next();

  // The offset of the next byte that next() returns.
  std::uint64_t offset() const { return offset_; }

 private:
  void open();

  const RawClient& client_;
  v1::ReadExecOutputRequest request_;
  std::uint64_t offset_;
  ReconnectBackoff backoff_;
  std::optional<ExecOutputStream> stream_;
  // Declared after the stream that it cancels, so that it is destroyed first.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace agbox::sdk
