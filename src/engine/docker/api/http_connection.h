// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 connection to the engine's Unix socket: one exchange at a time, a deadline for every
// wait, failures as values. Knows nothing of Docker's API.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine_error.h"

namespace agbox {

// None: unlimited.
using EngineDeadline = std::optional<std::chrono::steady_clock::time_point>;

struct HttpRequest {
  std::string method{};
  std::string target{};
  std::string body{};           // JSON
  std::string registry_auth{};  // X-Registry-Auth, unless empty
};

class HttpConnection {
 public:
  static asio::awaitable<EngineResult<std::unique_ptr<HttpConnection>>> connect(
      std::string socket_path, EngineDeadline deadline);
  ~HttpConnection();

  // From now on. When it passes, any wait fails as Unavailable, and the connection is closed.
  void set_deadline(EngineDeadline deadline);

  // Sends the request and waits for the head of the answer; returns its status. The answer to HEAD
  // has no body.
  asio::awaitable<EngineResult<int>> send(const HttpRequest& request);
  // The next chunk of the answer's body; empty at its end.
  asio::awaitable<EngineResult<std::string>> read_some();
  // The rest of the body, at most `limit` bytes.
  asio::awaitable<EngineResult<std::string>> read_all(std::size_t limit);

  // A header of the last answer; empty if it has none of this name.
  std::string header(std::string_view name) const;
  // A deadline has passed, and the connection is closed.
  bool has_expired() const;

  // The last answer was read completely and the engine keeps the connection open.
  bool is_reusable() const;
  // An idle connection is still open and without unexpected data.
  bool is_idle() const;

 private:
  struct Wire;
  explicit HttpConnection(std::shared_ptr<Wire> wire);

  std::shared_ptr<Wire> wire_;  // the deadline's handler holds it weakly
};

}  // namespace agbox
