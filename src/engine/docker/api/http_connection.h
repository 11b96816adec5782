// SPDX-License-Identifier: Apache-2.0
// One HTTP/1.1 connection to the engine's Unix socket: one exchange at a time, a deadline over
// everything that waits, and failures as values. It knows nothing of Docker's API.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/docker/api/engine_error.h"

namespace agbox {

// None: it may last as long as it likes.
using EngineDeadline = std::optional<std::chrono::steady_clock::time_point>;

// Gives the next piece of a request's body whenever it is awaited; an empty piece is the end.
using BodySource = std::function<boost::asio::awaitable<Result<std::string>>()>;

struct HttpRequest {
  std::string method{};
  std::string target{};
  std::string body{};
  std::string content_type = "application/json";
  std::string registry_auth{};  // X-Registry-Auth, where it is not empty
  BodySource body_source{};     // instead of `body`, sent in chunks
};

class HttpConnection {
 public:
  static boost::asio::awaitable<EngineResult<std::unique_ptr<HttpConnection>>> connect(
      std::string socket_path, EngineDeadline deadline);
  ~HttpConnection();

  // From now on. Whatever waits when it passes fails as Unavailable, and the connection is done.
  void set_deadline(EngineDeadline deadline);

  // Sends the request and waits for the head of the answer; gives its status.
  boost::asio::awaitable<EngineResult<int>> send(const HttpRequest& request);
  // The next piece of the answer's body; empty at its end.
  boost::asio::awaitable<EngineResult<std::string>> read_some();
  // The rest of the body, which may have at most `limit` bytes.
  boost::asio::awaitable<EngineResult<std::string>> read_all(std::size_t limit);

  // The last answer was read to its end and the engine keeps the connection open.
  bool is_reusable() const;
  // Nobody closed an idle connection, or wrote to it unasked.
  bool is_quiet() const;

 private:
  struct Wire;
  explicit HttpConnection(std::shared_ptr<Wire> wire);
  boost::asio::awaitable<EngineResult<>> send_body(const BodySource& source);

  std::shared_ptr<Wire> wire_;  // shared with the deadline's handler alone, which holds it weakly
};

}  // namespace agbox
