// SPDX-License-Identifier: Apache-2.0
// Reads the logs of containers for clients, from the engine and one piece at a time: the next one
// is read when the client has taken the last, so that a slow client costs a piece of memory. A
// follower goes on when its container is started again or the engine is back, and ends when the
// container is removed.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "async/backoff.h"
#include "async/condition.h"
#include "base/result.h"
#include "control/actor_services.h"
#include "control/directory.h"
#include "model/sandbox/container_log.h"
#include "model/spec/maxima.h"

namespace agbox {

class ContainerLogs {
 public:
  struct Request {
    std::string sandbox_id;
    std::string container;  // see SandboxActor::container()
    LogQuery query;
  };
  // Returns when the next piece may come; false if the reader is gone.
  using Write = std::function<asio::awaitable<bool>(LogPiece piece)>;

  ContainerLogs(ActorServices& services, Directory& directory)
      : services_(services), directory_(directory), changed_(services.loop.io().get_executor()) {}

  // Until the end of the log. The first piece of one that is followed has no data: it is open.
  // RESOURCE_EXHAUSTED beyond maxima::kLogReaders. Cancelled, it frees its connection at once.
  asio::awaitable<Result<>> read(Request request, Write write);

  // A container of the sandbox was started or removed.
  void container_changed(const std::string& sandbox_id);
  void engine_is_back();

 private:
  struct Reader {
    Request request;  // its query changes with what was read
    Write write;
    WallTime begun_at;
    Backoff backoff;          // before the engine is asked again
    bool was_open = false;    // the log, once
    std::uint64_t hints = 0;  // that something has changed
  };
  // How one pass over the log has ended.
  enum class Pass { Silent, NewOutput, EngineLost, ContainerGone };

  asio::awaitable<Result<>> read_to_end(Reader& reader);
  asio::awaitable<Result<Pass>> read_once(Reader& reader, ContainerId container);
  static Result<Pass> after_failure(const Reader& reader, const EngineError& error);
  void hint(Reader& reader);

  ActorServices& services_;
  Directory& directory_;
  Condition changed_;
  std::list<Reader*> readers_;
};

}  // namespace agbox
