// SPDX-License-Identifier: Apache-2.0
#include "model/spec/request_checks.h"

#include <cstdint>
#include <utility>

#include "base/utf8.h"
#include "model/spec/maxima.h"

namespace agbox {
namespace {

constexpr std::size_t kExcerptBytes = 256;
// The limits of google.protobuf.Duration: ten thousand years.
constexpr std::int64_t kMaxDurationSeconds = 315'576'000'000;
constexpr std::int32_t kMaxDurationNanos = 999'999'999;

Result<> check_variable(const std::string& map, const std::string& name, std::string_view value) {
  if (name.empty()) return invalid_argument(map + ": a name must not be empty");
  if (name.find('=') != std::string::npos || contains_nul(name)) {
    return invalid_argument(map + ": the name " + quoted_excerpt(name) +
                            " must not contain '=' or a NUL byte");
  }
  if (contains_nul(value)) {
    return invalid_argument(map + "." + excerpt(name) + ": the value contains a NUL byte");
  }
  return {};
}

bool is_reserved(std::string_view name) {
  return name == "HOST_UID" || name == "HOST_GID" || name.starts_with("AGENTS_SANDBOX_");
}

}  // namespace

std::unexpected<Error> invalid_argument(std::string message) {
  return fail(reason::kInvalidArgument, std::move(message));
}

Result<> at_most(std::size_t count, std::size_t most, std::string_view what) {
  if (count <= most) return {};
  return fail(reason::kResourceExhausted, std::string(what) + " is " + std::to_string(count) +
                                              ", at most " + std::to_string(most) + " is possible");
}

bool contains_nul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

std::string excerpt(std::string_view text) {
  if (text.size() <= kExcerptBytes) return std::string(text);
  return std::string(utf8_prefix(text, kExcerptBytes)) + "…";
}

std::string quoted_excerpt(std::string_view text) {
  return "\"" + excerpt(text) + "\"";
}

Result<> check_tokens(const std::string& field,
                      const google::protobuf::RepeatedPtrField<std::string>& tokens) {
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(tokens.size()), maxima::kCommandTokens,
                         "the number of " + field + " entries"));
  for (int i = 0; i < tokens.size(); ++i) {
    const std::string entry = field + "[" + std::to_string(i) + "]";
    if (tokens[i].empty()) return invalid_argument(entry + ": empty string entry is not allowed");
    if (contains_nul(tokens[i])) return invalid_argument(entry + ": contains a NUL byte");
  }
  return {};
}

Result<> check_duration(const std::string& field, const google::protobuf::Duration& duration) {
  if (duration.seconds() < 0 || duration.nanos() < 0) {
    return invalid_argument(field + " must not be negative");
  }
  if (duration.seconds() <= kMaxDurationSeconds && duration.nanos() <= kMaxDurationNanos) return {};
  return invalid_argument(field +
                          " is not a valid duration: at most 315576000000 s and 999999999 ns");
}

Result<> check_environment(std::string_view field, const EnvironmentMap& environment) {
  AGBOX_TRY_VOID(at_most(environment.size(), maxima::kEnvs, "the number of " + std::string(field)));
  for (const auto& [name, value] : environment) {
    AGBOX_TRY_VOID(check_variable(std::string(field), name, value));
  }
  return {};
}

Result<> check_reserved_names(std::string_view field, std::string_view setter,
                              const EnvironmentMap& environment) {
  for (const auto& [name, value] : environment) {
    if (!is_reserved(name)) continue;
    return invalid_argument(std::string(field) + "." + excerpt(name) +
                            " is reserved for internal runtime setup and must not be set by " +
                            std::string(setter));
  }
  return {};
}

}  // namespace agbox
