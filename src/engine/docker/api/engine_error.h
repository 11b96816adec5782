// SPDX-License-Identifier: Apache-2.0
// How a call to the engine can fail. An EngineError is an Error with a kind, so that callers can
// distinguish a definitive refusal from an unknown outcome without parsing texts.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/docker/api/engine_call.h"

namespace agbox {

enum class EngineErrorKind {
  Unavailable,  // unreachable, connection lost or timed out. May have been done. Retry
  Unfit,        // the engine cannot run sandboxes; nothing was requested. May be replaced. Retry
  Garbled,      // unreadable answer. May have been done. Retry
  NotFound,     // the object does not exist
  Conflict,     // with an existing object, or with the object's state
  Refused,      // any other definitive refusal
  Cancelled,    // by the caller
};

class [[nodiscard]] EngineError : public Error {
 public:
  EngineError(EngineErrorKind kind, std::string message, int http_status = 0,
              std::string engine_text = {});

  EngineErrorKind kind() const { return kind_; }
  // 0 if there was no answer.
  int http_status() const { return http_status_; }
  // The engine's own message; may be empty.
  const std::string& engine_text() const { return engine_text_; }

  // True for a transient failure: it may have been done, and a retry may help.
  bool is_open() const {
    return kind_ == EngineErrorKind::Unavailable || kind_ == EngineErrorKind::Unfit ||
           kind_ == EngineErrorKind::Garbled;
  }

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

inline std::unexpected<EngineError> engine_fail(EngineErrorKind kind, std::string message) {
  return std::unexpected(EngineError(kind, std::move(message)));
}

// "<attempt> <subject>", for example "start container agbox-primary-s1".
std::string describe(EngineCall call, std::string_view subject);

// The error for an answer with a status other than 2xx and 304.
EngineError refusal(EngineCall call, std::string_view subject, int http_status,
                    std::string_view body);

// True if the engine does not support the API version of our path: it is not the engine that we
// negotiated with.
bool is_version_mismatch(const EngineError& error);

}  // namespace agbox
