// SPDX-License-Identifier: Apache-2.0
// Expected failures are values: a Result is a value or an Error. An Error has a Reason (for
// programs), a one-sentence message (for people) and metadata (for client libraries). Exceptions
// are bugs.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace agbox {

// The kind of failure, with the numbers of gRPC's status codes.
enum class ErrorCode {
  Cancelled = 1,
  InvalidArgument = 3,
  NotFound = 5,
  AlreadyExists = 6,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
};

// Why it failed: a constant in namespace `reason`. Generic ones are below, those of the domain in
// model/reasons.h.
struct Reason {
  ErrorCode code;
  std::string_view name;  // google.rpc.ErrorInfo.reason

  bool operator==(const Reason&) const = default;
};

namespace reason {

inline constexpr Reason kInvalidArgument{ErrorCode::InvalidArgument, "INVALID_ARGUMENT"};
inline constexpr Reason kResourceExhausted{ErrorCode::ResourceExhausted, "RESOURCE_EXHAUSTED"};
inline constexpr Reason kUnimplemented{ErrorCode::Unimplemented, "UNIMPLEMENTED"};
inline constexpr Reason kHostNotReady{ErrorCode::FailedPrecondition, "HOST_NOT_READY"};
inline constexpr Reason kCancelled{ErrorCode::Cancelled, "CANCELLED"};
inline constexpr Reason kInternal{ErrorCode::Internal, "INTERNAL"};  // bugs only

}  // namespace reason

class [[nodiscard]] Error {
 public:
  using Metadata = std::map<std::string, std::string>;

  Error(Reason reason, std::string message, Metadata metadata = {})
      : reason_(reason), message_(std::move(message)), metadata_(std::move(metadata)) {}

  const Reason& reason() const { return reason_; }
  const std::string& message() const { return message_; }
  const Metadata& metadata() const { return metadata_; }

  // Adds context: "<context>: <message>".
  Error within(std::string_view context) const {
    return {reason_, std::string(context) + ": " + message_, metadata_};
  }

  bool operator==(const Error&) const = default;

 private:
  Reason reason_;
  std::string message_;
  Metadata metadata_;
};

template <class T = void>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Reason reason, std::string message,
                                   Error::Metadata metadata = {}) {
  return std::unexpected(Error(reason, std::move(message), std::move(metadata)));
}

// HOST_NOT_READY with "<what>: <strerror>", for system calls.
Error errno_error(std::string_view what, int error_number);

}  // namespace agbox

// Binds `name` to the value, or returns the error from the function.
#define AGBOX_TRY(name, expression)                                             \
  auto name##_result = (expression);                                            \
  if (!name##_result) return std::unexpected(std::move(name##_result.error())); \
  [[maybe_unused]] auto name = std::move(*name##_result)

// The same for Result<void>.
#define AGBOX_TRY_VOID(expression)                             \
  do {                                                         \
    if (auto agbox_result = (expression); !agbox_result)       \
      return std::unexpected(std::move(agbox_result.error())); \
  } while (false)

// The same in a coroutine.
#define AGBOX_CO_TRY(name, expression)                                             \
  auto name##_result = (expression);                                               \
  if (!name##_result) co_return std::unexpected(std::move(name##_result.error())); \
  [[maybe_unused]] auto name = std::move(*name##_result)

#define AGBOX_CO_TRY_VOID(expression)                             \
  do {                                                            \
    if (auto agbox_result = (expression); !agbox_result)          \
      co_return std::unexpected(std::move(agbox_result.error())); \
  } while (false)
