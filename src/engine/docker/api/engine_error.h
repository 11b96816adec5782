// SPDX-License-Identifier: Apache-2.0
// How a call to the engine can fail. An EngineError is an Error that also says what kind of failure
// it is, so that callers can tell "definitely refused" from "nobody knows" without reading texts.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "engine/docker/api/engine_call.h"

namespace agbox {

enum class EngineErrorKind {
  Unavailable,  // no answer: not reachable, broke off, too slow. Perhaps it was done. Retry
  Unfit,        // it cannot run sandboxes and was asked for nothing. Another may come. Retry
  Garbled,      // an answer that cannot be read. Perhaps it was done. Retry
  NotFound,     // the object does not exist
  Conflict,     // it clashes with something that exists, or with the object's state
  Refused,      // any other definite no
  Cancelled,    // the caller gave up
};

class [[nodiscard]] EngineError : public Error {
 public:
  EngineError(EngineErrorKind kind, std::string message, int http_status = 0,
              std::string engine_text = {});

  EngineErrorKind kind() const { return kind_; }
  // 0 where no answer came.
  int http_status() const { return http_status_; }
  // What the engine itself said; empty where it said nothing.
  const std::string& engine_text() const { return engine_text_; }

  // Whether the engine may have done it nevertheless, and asking again may help.
  bool is_open() const {
    return kind_ == EngineErrorKind::Unavailable || kind_ == EngineErrorKind::Unfit ||
           kind_ == EngineErrorKind::Garbled;
  }

  EngineError within(std::string_view context) const {
    if (kind_ == EngineErrorKind::Unfit) return *this;  // whatever was about to be asked
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

// The error that an answer with a status outside 2xx and 304 stands for.
EngineError refusal(EngineCall call, std::string_view subject, int http_status,
                    std::string_view body);

// Whether the engine says that it does not speak the API version of our path: it is not the engine
// that we negotiated with.
bool is_version_mismatch(const EngineError& error);

}  // namespace agbox
