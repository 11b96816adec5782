// SPDX-License-Identifier: Apache-2.0
// The user's credentials for a registry, from the Docker configuration file and from the helper
// programs that it names. They go to the engine with a pull and nowhere else: no message and no log
// line contains them.
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

struct RegistryCredentials {
  std::string username{};
  std::string password{};
  std::string identity_token{};
  std::string server_address{};

  bool operator==(const RegistryCredentials&) const = default;
};

// The value of X-Registry-Auth: JSON in base64 of the URL kind.
std::string registry_auth_header(const RegistryCredentials& credentials);

// Where to look for the credentials of one registry.
struct CredentialSource {
  std::string helper{};  // docker-credential-<helper>; empty: none
  std::optional<RegistryCredentials> stored{};
};

// Reads the configuration file's text. `key` is ImageReference::credentials_key().
Result<CredentialSource> find_credentials(std::string_view config_text, std::string_view key);

// Reads what a helper wrote; nothing where it says that it has none.
Result<std::optional<RegistryCredentials>> read_helper_answer(std::string_view answer,
                                                              int exit_code, std::string_view key);

class RegistryAuth {
 public:
  // DOCKER_CONFIG, else HOME/.docker. PATH finds the helpers.
  explicit RegistryAuth(Environment environment);

  // X-Registry-Auth for a registry; empty where the user has no credentials for it.
  boost::asio::awaitable<Result<std::string>> header_for(
      std::string key, std::chrono::milliseconds deadline = std::chrono::seconds(30)) const;

 private:
  Environment environment_;
};

}  // namespace agbox
