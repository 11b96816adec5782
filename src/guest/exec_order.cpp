// SPDX-License-Identifier: Apache-2.0
#include "guest/exec_order.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/unique_fd.h"
#include "guest/child.h"
#include "guestwire/place.h"

namespace agbox::guest {
namespace {

constexpr std::string_view kRoot = "root";
constexpr const char* kRootHome = "/root";
constexpr std::size_t kMaxAccountFile = std::size_t{4} << 20;

// Empty if it does not exist, or is no file: root inside may have replaced it by anything.
std::string read_account_file(const char* path) {
  const UniqueFd file(::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string text;
  std::array<char, 8192> chunk;
  while (text.size() < kMaxAccountFile) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  return text;
}

Result<Identity> identity_of(const std::string& user, RuntimeUser runtime_user,
                             const AccountFiles& files) {
  // By number it is the same user, who must not get another group for that.
  if (user == runtime_user.name || user == std::to_string(runtime_user.identity.uid)) {
    return runtime_user.identity;
  }
  auto resolved = resolve_user(user, files);
  // An image without account files has a root all the same.
  const bool is_root = user == kRoot || (resolved && resolved->uid == 0 && resolved->home == "/");
  if (!resolved && is_root) resolved = Identity{};
  if (!resolved) {
    return fail(reason::kInvalidArgument,
                "user '" + user +
                    "' is neither in the container's /etc/passwd and /etc/group nor a number");
  }
  if (is_root && resolved->home == "/") resolved->home = kRootHome;
  return resolved;
}

std::vector<std::string> in_turn(std::vector<std::string> first, std::vector<std::string> second) {
  std::ranges::move(second, std::back_inserter(first));
  return first;
}

}  // namespace

TerminalSize terminal_size_of(const v1::TerminalSize& size) {
  return {.rows = static_cast<std::uint16_t>(size.rows()),
          .columns = static_cast<std::uint16_t>(size.columns())};
}

std::vector<std::string> environment_of(const Identity& user, std::string_view name) {
  return {"HOME=" + user.home, "USER=" + std::string(name)};
}

std::vector<std::string> environment_of(const Identity& runtime_user) {
  return environment_of(runtime_user, guestwire::kUserName);
}

ExecOrder exec_order_of(v1::StartExec message, RuntimeUser runtime_user, LogFiles files) {
  std::vector<std::string> own(std::move_iterator(message.mutable_environment()->begin()),
                               std::move_iterator(message.mutable_environment()->end()));
  ExecOrder order{.command = {},
                  .environment = {},
                  .working_directory = message.working_directory(),
                  .user = runtime_user.identity,
                  .files = std::move(files),
                  .limits = {message.output_limit_bytes(), message.free_space_reserve_bytes()},
                  .runtime_user_name = runtime_user.name,
                  .user_name = message.user(),
                  .has_input = message.has_input() || message.has_terminal()};
  if (message.has_terminal()) order.terminal = terminal_size_of(message.terminal());
  if (order.user_name.empty()) {
    own = environment_with(
        in_turn(environment_of(runtime_user.identity, runtime_user.name), std::move(own)));
  }
  order.environment = std::move(own);
  for (std::string& argument : *message.mutable_command()) {
    order.command.push_back(std::move(argument));
  }
  return order;
}

Result<> resolve_user_of(ExecOrder& order) {
  if (order.user_name.empty()) return {};
  const AccountFiles files{.passwd = read_account_file("/etc/passwd"),
                           .group = read_account_file("/etc/group"),
                           .shadow = std::nullopt};
  AGBOX_TRY(user, identity_of(order.user_name, {order.user, order.runtime_user_name}, files));
  const bool is_runtime_user = user == order.user;
  const std::string name =
      is_runtime_user ? order.runtime_user_name : user_name_of(user.uid, files.passwd);
  order.user = std::move(user);
  order.environment =
      environment_with(in_turn(environment_of(order.user, name), std::move(order.environment)));
  order.user_name.clear();
  return {};
}

}  // namespace agbox::guest
