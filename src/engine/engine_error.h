// SPDX-License-Identifier: Apache-2.0
// How a call to the engine can fail. An EngineError is an Error with a kind, so that callers can
// distinguish a definitive refusal from an unknown outcome without parsing texts.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace agbox {

namespace asio = boost::asio;

enum class EngineErrorKind {
  Unavailable,  // unreachable, connection lost or timed out. May have been done. Retry
  Unfit,        // the engine cannot run sandboxes; nothing was requested. May be replaced. Retry
  Garbled,      // unreadable answer. May have been done. Retry
  NotFound,     // the object does not exist
  Conflict,     // with an existing object, or with the object's state
  Unsafe,       // what is in the container would block the engine; nothing was requested
  TimedOut,     // no answer about this container, though the engine answers others. May be done
  PortInUse,    // a port of the host that the workload publishes is not free
  Refused,      // any other definitive refusal
  Cancelled,    // by the caller
};

class [[nodiscard]] EngineError : public Error {
 public:
  EngineError(EngineErrorKind kind, std::string message, int http_status = 0,
              std::string engine_text = {});
  // Implicit, because a call to the engine may fail before it is made.
  EngineError(const Error& error);  // NOLINT(google-explicit-constructor)

  EngineErrorKind kind() const { return kind_; }
  // For adapters that speak HTTP; 0 if there was no answer.
  int http_status() const { return http_status_; }
  // The engine's own message; may be empty.
  const std::string& engine_text() const { return engine_text_; }

  // True for a transient failure: it may have been done, and a retry may help.
  bool is_open() const {
    return kind_ == EngineErrorKind::Unavailable || kind_ == EngineErrorKind::Unfit ||
           kind_ == EngineErrorKind::Garbled;
  }
  // True for a definitive answer, or if none comes: a retry would end alike.
  bool is_definite() const { return !is_open() && kind_ != EngineErrorKind::Cancelled; }

  EngineError within(std::string_view context) const {
    if (kind_ == EngineErrorKind::Unfit) return *this;  // regardless of the attempt
    return {kind_, std::string(context) + ": " + message(), http_status_, engine_text_};
  }

 private:
  EngineErrorKind kind_;
  int http_status_;
  std::string engine_text_;
};

template <class T = void>
using EngineResult = std::expected<T, EngineError>;

template <class T = void>
using EngineAwaitable = asio::awaitable<EngineResult<T>>;

inline std::unexpected<EngineError> engine_fail(EngineErrorKind kind, std::string message) {
  return std::unexpected(EngineError(kind, std::move(message)));
}

}  // namespace agbox
