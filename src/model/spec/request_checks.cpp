// SPDX-License-Identifier: Apache-2.0
#include "model/spec/request_checks.h"

#include <utility>

#include "model/spec/maxima.h"

namespace agbox {
namespace {

Result<> check_variable(const std::string& map, const std::string& name, std::string_view value) {
  if (name.empty()) return invalid_argument(map + ": a name must not be empty");
  if (name.find('=') != std::string::npos || contains_nul(name)) {
    return invalid_argument(map + ": the name \"" + name + "\" must not contain '=' or a NUL byte");
  }
  if (contains_nul(value)) {
    return invalid_argument(map + "." + name + ": the value contains a NUL byte");
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
    return invalid_argument(std::string(field) + "." + name +
                            " is reserved for internal runtime setup and must not be set by " +
                            std::string(setter));
  }
  return {};
}

}  // namespace agbox
