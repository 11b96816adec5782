// SPDX-License-Identifier: Apache-2.0
// What one exec writes to one of its streams, every byte in order and once, also across restarts of
// the daemon: where the reading breaks off, it goes on behind the last byte that it has seen.
//
//   OutputFollower output(client, exec_id, v1::OUTPUT_STREAM_STDOUT);
//   while (auto chunk = output.next()) {
//     if (!*chunk) break;  // the exec has ended
//     show(**chunk);
//   }
#pragma once

#include <agbox/patience.h>
#include <agbox/raw_client.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace agbox::sdk {

// Until the exec has ended, or only what is there already.
enum class OutputExtent { UntilTheEnd, SoFar };

class OutputFollower {
 public:
  // The client must outlive the follower.
  OutputFollower(const RawClient& client, std::string exec_id, v1::OutputStream stream,
                 FollowOptions options = {}, OutputExtent extent = OutputExtent::UntilTheEnd,
                 std::uint64_t offset = 0);

  // Blocks until there is something. Nothing: that was all.
  Result<std::optional<std::string>> next();

  // Of the byte that next() begins with.
  std::uint64_t offset() const { return offset_; }

 private:
  void open();

  const RawClient& client_;
  v1::ReadExecOutputRequest request_;
  std::uint64_t offset_;
  Patience patience_;
  std::optional<ExecOutputStream> stream_;
  // Declared behind the stream that it cancels: it goes first.
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

}  // namespace agbox::sdk
