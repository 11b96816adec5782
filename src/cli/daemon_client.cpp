// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_client.h"

#include <array>
#include <utility>

#include "cli/command_line.h"

namespace agbox::cli {

namespace {

// As gRPC writes it: NOT_FOUND.
std::string code_name(sdk::StatusCode code) {
  constexpr std::array kNames = {"OK",
                                 "CANCELLED",
                                 "UNKNOWN",
                                 "INVALID_ARGUMENT",
                                 "DEADLINE_EXCEEDED",
                                 "NOT_FOUND",
                                 "ALREADY_EXISTS",
                                 "PERMISSION_DENIED",
                                 "RESOURCE_EXHAUSTED",
                                 "FAILED_PRECONDITION",
                                 "ABORTED",
                                 "OUT_OF_RANGE",
                                 "UNIMPLEMENTED",
                                 "INTERNAL",
                                 "UNAVAILABLE",
                                 "DATA_LOSS",
                                 "UNAUTHENTICATED"};
  const auto number = static_cast<std::size_t>(code);
  return number < kNames.size() ? kNames.at(number) : std::to_string(number);
}

}  // namespace

std::optional<sdk::RawClient> open_client(Console& console) {
  auto client = sdk::RawClient::open();
  if (client) return std::move(*client);
  const bool has_path = client.error().kind != sdk::ErrorKind::NoSocketPath;
  fail_call(console, has_path ? "connect daemon" : "resolve daemon socket", client.error());
  return std::nullopt;
}

int fail_call(Console& console, std::string_view attempt, const sdk::Error& error) {
  return fail(console, std::string(attempt) + ": " + error.message, error);
}

int fail(Console& console, const std::string& message, const sdk::Error& error) {
  console.failure(
      message, {.code = code_name(error.code), .reason = error.reason, .metadata = error.metadata});
  return kRuntimeError;
}

int refuse_usage(Console& console, const std::string& message) {
  console.failure(message);
  return kUsageError;
}

}  // namespace agbox::cli
