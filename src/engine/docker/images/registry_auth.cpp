// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/images/registry_auth.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <vector>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "engine/docker/api/base64.h"
#include "engine/docker/api/json_reader.h"
#include "engine/docker/images/helper_program.h"

namespace agbox {
namespace {

namespace json = boost::json;

constexpr std::size_t kLargestConfig = std::size_t{1} << 20;
constexpr std::string_view kTokenUser = "<token>";  // a helper's marker for a token

// "https://Registry.example/v2/" and "registry.example" are the same registry.
std::string host_of(std::string_view key) {
  if (const std::size_t scheme = key.find("://"); scheme != std::string_view::npos) {
    key.remove_prefix(scheme + 3);
  }
  std::string host(key.substr(0, key.find('/')));
  std::ranges::transform(host, host.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return host;
}

// The value of `key` in `all`, or of another spelling of the same host.
std::optional<JsonReader> entry_for(const JsonReader& all, std::string_view key) {
  std::optional<JsonReader> same_host;
  for (const auto& [name, value] : all.fields()) {
    if (name == key) return value;
    if (!same_host && host_of(name) == host_of(key)) same_host = value;
  }
  return same_host;
}

Result<std::optional<RegistryCredentials>> stored_credentials(const JsonReader& entry,
                                                              std::string_view key) {
  RegistryCredentials found{.username = entry["username"].text(),
                            .password = entry["password"].text(),
                            .identity_token = entry["identitytoken"].text(),
                            .server_address = std::string(key)};
  if (const std::string packed = entry["auth"].text(); !packed.empty()) {
    const std::optional<std::string> plain = from_base64(packed);
    const std::size_t colon = plain ? plain->find(':') : std::string::npos;
    if (colon == std::string::npos) {
      return fail(reason::kInvalidArgument,
                  "the entry for " + std::string(key) +
                      " is not base64 of user:password; run docker login again");
    }
    found.username = plain->substr(0, colon);
    found.password = plain->substr(colon + 1);
    while (found.password.ends_with('\0')) found.password.pop_back();
  }
  if (!found.identity_token.empty()) found.password.clear();
  if (found.username.empty() && found.identity_token.empty()) return std::nullopt;
  return found;
}

bool is_helper_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

// Empty if there is no file.
Result<std::string> read_config(const std::filesystem::path& path) {
  // O_NONBLOCK: must not block on a FIFO or device.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::string();
  if (!file) return std::unexpected(errno_error("cannot open " + path.string(), errno));
  struct stat facts{};
  if (::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return fail(reason::kInvalidArgument, path.string() + " is not a file");
  }
  auto text = read_all(file.get(), kLargestConfig);
  if (text) return std::move(*text);
  return std::unexpected(errno_error("cannot read " + path.string(), text.error()));
}

}  // namespace

std::string registry_auth_header(const RegistryCredentials& credentials) {
  json::object object;
  if (!credentials.username.empty()) object["username"] = credentials.username;
  if (!credentials.password.empty()) object["password"] = credentials.password;
  if (!credentials.identity_token.empty()) object["identitytoken"] = credentials.identity_token;
  if (!credentials.server_address.empty()) object["serveraddress"] = credentials.server_address;
  return to_url_safe_base64(json::serialize(object));
}

Result<CredentialSource> find_credentials(std::string_view config_text, std::string_view key) {
  boost::system::error_code not_json;
  const json::value document =
      json::parse(json::string_view(config_text.data(), config_text.size()), not_json);
  if (not_json) {
    return fail(reason::kInvalidArgument, "it is not JSON: " + not_json.message());
  }
  std::string problem;
  const JsonReader config(document, problem);
  CredentialSource source;
  if (const auto helper = entry_for(config["credHelpers"], key)) source.helper = helper->text();
  if (source.helper.empty()) source.helper = config["credsStore"].text();
  if (const auto entry = entry_for(config["auths"], key)) {
    // With a helper the entries of auths are empty or obsolete.
    if (source.helper.empty()) {
      AGBOX_TRY(stored, stored_credentials(*entry, key));
      source.stored = std::move(stored);
    }
  }
  if (!problem.empty()) {
    return fail(reason::kInvalidArgument, "a field of it has the wrong type");
  }
  if (!source.helper.empty() && !is_helper_name(source.helper)) {
    return fail(reason::kInvalidArgument, "it names a credential helper that cannot be a program");
  }
  return source;
}

Result<std::optional<RegistryCredentials>> read_helper_answer(std::string_view answer,
                                                              int exit_code, std::string_view key) {
  if (exit_code != 0) {
    if (answer.contains("credentials not found")) return std::nullopt;
    return fail(reason::kInvalidArgument,
                "it ended with code " + std::to_string(exit_code) + " for " + std::string(key));
  }
  boost::system::error_code not_json;
  const json::value document =
      json::parse(json::string_view(answer.data(), answer.size()), not_json);
  std::string problem;
  if (not_json) return fail(reason::kInvalidArgument, "its answer is not JSON");
  const JsonReader reader(document, problem);
  RegistryCredentials found{.username = reader["Username"].text(),
                            .password = reader["Secret"].text(),
                            .server_address = std::string(key)};
  if (!problem.empty()) return fail(reason::kInvalidArgument, "its answer cannot be read");
  if (found.username == kTokenUser) {
    found.identity_token = std::move(found.password);
    found.username.clear();
    found.password.clear();
  }
  if (found.username.empty() && found.identity_token.empty()) return std::nullopt;
  return found;
}

RegistryAuth::RegistryAuth(Environment environment) : environment_(std::move(environment)) {}

asio::awaitable<Result<std::string>> RegistryAuth::header_for(
    std::string key, std::chrono::milliseconds deadline) const {
  const auto variable = [this](const char* name) {
    const auto found = environment_.find(name);
    return found == environment_.end() ? std::string() : found->second;
  };
  std::filesystem::path directory = variable("DOCKER_CONFIG");
  if (directory.empty()) {
    if (variable("HOME").empty()) co_return std::string();
    directory = std::filesystem::path(variable("HOME")) / ".docker";
  }
  const std::filesystem::path file = directory / "config.json";
  AGBOX_CO_TRY(text, read_config(file));
  if (text.empty()) co_return std::string();
  const Result<CredentialSource> source = find_credentials(text, key);
  if (!source) co_return std::unexpected(source.error().within(file.string()));

  std::optional<RegistryCredentials> found = source->stored;
  if (!source->helper.empty()) {
    const std::string program = "docker-credential-" + source->helper;
    Result<HelperAnswer> ran = co_await run_helper(
        {.program = program, .arguments = {"get"}, .input = key, .environment = environment_},
        deadline);
    if (!ran) co_return std::unexpected(std::move(ran.error()));
    Result<std::optional<RegistryCredentials>> answer =
        read_helper_answer(ran->output, ran->exit_code, key);
    if (!answer) co_return std::unexpected(answer.error().within(program));
    found = std::move(*answer);
  }
  co_return found ? registry_auth_header(*found) : std::string();
}

}  // namespace agbox
