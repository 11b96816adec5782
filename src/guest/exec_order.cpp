// SPDX-License-Identifier: Apache-2.0
#include "guest/exec_order.h"

#include "guest/child.h"
#include "guestwire/place.h"

namespace agbox::guest {

std::vector<std::string> environment_of(const Identity& user) {
  return {"HOME=" + user.home, std::string("USER=") + guestwire::kUserName};
}

ExecOrder exec_order_of(v1::StartExec message, const Identity& user, LogFiles files) {
  std::vector<std::string> environment = environment_of(user);
  for (std::string& entry : *message.mutable_environment()) environment.push_back(std::move(entry));
  ExecOrder order{.command = {},
                  .environment = environment_with(environment),
                  .working_directory = message.working_directory(),
                  .user = user,
                  .files = std::move(files),
                  .limits = {message.output_limit_bytes(), message.free_space_reserve_bytes()}};
  for (std::string& argument : *message.mutable_command()) {
    order.command.push_back(std::move(argument));
  }
  return order;
}

}  // namespace agbox::guest
