// SPDX-License-Identifier: Apache-2.0
// The user's credentials for a registry, from the Docker configuration file and credential helpers.
// They are sent to the engine with a pull and appear in no message and no log line.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "paths/fixed_paths.h"

namespace agbox {

namespace asio = boost::asio;

struct RegistryCredentials {
  std::string username{};
  std::string password{};
  std::string identity_token{};
  std::string server_address{};

  bool operator==(const RegistryCredentials&) const = default;
};

// The value of X-Registry-Auth: JSON in URL-safe base64.
std::string registry_auth_header(const RegistryCredentials& credentials);

// The source of one registry's credentials.
struct CredentialSource {
  std::string helper{};  // docker-credential-<helper>; empty: none
  std::optional<RegistryCredentials> stored{};
};

// Parses the configuration file. `key` is ImageReference::credentials_key().
Result<CredentialSource> find_credentials(std::string_view config_text, std::string_view key);

// Parses a helper's output; nullopt if it has no credentials.
Result<std::optional<RegistryCredentials>> read_helper_answer(std::string_view answer,
                                                              int exit_code, std::string_view key);

class RegistryAuth {
 public:
  // Uses DOCKER_CONFIG or HOME/.docker, and PATH for helpers.
  explicit RegistryAuth(Environment environment);

  // X-Registry-Auth for a registry; empty if the user has no credentials for it.
  asio::awaitable<Result<std::string>> header_for(
      std::string key, std::chrono::milliseconds deadline = std::chrono::seconds(30)) const;

 private:
  Environment environment_;
};

}  // namespace agbox
