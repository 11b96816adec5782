// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/workload/account_files.h"

#include <algorithm>
#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/path_within.h"
#include "base/shown_path.h"

namespace agbox {
namespace {

using Type = FileSeen::Type;

constexpr const char* kDirectory = "/etc";
constexpr const char* kPasswd = "/etc/passwd";
constexpr const char* kGroup = "/etc/group";
// The engine parses every line. As large as the guest accepts.
constexpr std::int64_t kLargestFile = std::int64_t{4} << 20;
// Filesystems that exist only while the container runs.
constexpr std::array<std::string_view, 3> kMountedAtStart = {"/dev", "/proc", "/sys"};

const char* name_of(Type type) {
  switch (type) {
    case Type::File:
      return "a file";
    case Type::Directory:
      return "a directory";
    case Type::Link:
      return "a link";
    case Type::Fifo:
      return "a FIFO";
    case Type::Socket:
      return "a socket";
    case Type::Device:
      return "a device";
    case Type::Other:
      break;
  }
  return "no ordinary file";
}

class Check {
 public:
  Check(EngineClient& client, std::string container_id, CallOptions options)
      : client_(client), id_(std::move(container_id)), options_(std::move(options)) {}

  EngineAwaitable<> run() {
    // The engine resolves links of directories, so that the last two are what they lead to.
    using asio::experimental::awaitable_operators::operator&&;
    auto [directory, passwd, group] = co_await (find(kDirectory) && find(kPasswd) && find(kGroup));
    AGBOX_CO_TRY_VOID(co_await check(kDirectory, std::move(directory), Type::Directory));
    AGBOX_CO_TRY_VOID(co_await check(kPasswd, std::move(passwd), Type::File));
    co_return co_await check(kGroup, std::move(group), Type::File);
  }

 private:
  using Found = EngineResult<std::optional<FileSeen>>;

  asio::awaitable<Found> find(std::string path) {
    EngineResult<FileSeen> seen = co_await client_.stat_path(id_, std::move(path), options_);
    if (seen) co_return std::optional(std::move(*seen));
    if (seen.error().kind() == EngineErrorKind::NotFound) co_return std::nullopt;
    co_return std::unexpected(std::move(seen.error()));
  }

  EngineAwaitable<> check(const char* path, Found found, Type wanted) {
    if (!found) co_return std::unexpected(std::move(found.error()));
    if (!*found) co_return EngineResult<>{};
    if ((*found)->type != Type::Link) co_return check_found(path, **found, wanted);

    const std::string target = (*found)->link_target;
    const std::string leads = std::string(path) + " leads to " + shown_path(target);
    AGBOX_CO_TRY(container, co_await client_.inspect_container(id_, options_));
    const auto holds_target = [&target](std::string_view mount) {
      return is_path_within(target, mount);
    };
    if (std::ranges::any_of(container.mount_targets, holds_target) ||
        std::ranges::any_of(kMountedAtStart, holds_target)) {
      co_return unsafe(leads + ", which is part of a mount");
    }
    // Perhaps only its name cannot be expressed.
    AGBOX_CO_TRY(end, co_await find(target));
    if (!end) co_return unsafe(leads + ", which does not exist");
    co_return check_found(leads + ", which", *end, wanted);
  }

  static EngineResult<> check_found(const std::string& what, const FileSeen& found, Type wanted) {
    if (found.type != wanted) return unsafe(what + " is " + name_of(found.type));
    if (wanted == Type::File && found.bytes > kLargestFile) {
      return unsafe(what + " has " + std::to_string(found.bytes) + " bytes");
    }
    return {};
  }

  static std::unexpected<EngineError> unsafe(const std::string& what) {
    return engine_fail(EngineErrorKind::Unsafe,
                       "the container was not started: " + what +
                           ", and the engine would open it and may block; replace it with a file "
                           "(docker cp), or delete the sandbox");
  }

  EngineClient& client_;
  std::string id_;
  CallOptions options_;
};

}  // namespace

EngineAwaitable<> check_account_files(EngineClient& client, std::string container_id,
                                      CallOptions options) {
  Check check(client, std::move(container_id), std::move(options));
  co_return co_await check.run();
}

}  // namespace agbox
