// SPDX-License-Identifier: Apache-2.0
// Runs a command in a new sandbox.
#include <agbox/agbox.h>

#include <iostream>

agbox::Result<void> run_command() {
  auto client = agbox::Client::open();
  if (!client) return std::unexpected(client.error());
  auto box = client->create({.image = "debian:12"});
  if (!box) return std::unexpected(box.error());

  auto result = box->run({"sh", "-c", "echo hello from $(whoami); exit 3"});
  if (!result) return std::unexpected(result.error());
  std::cout << result->out << result->exit_code << "\n";

  auto sorted = box->run({.args = {"sort"}, .cwd = "/tmp", .input = "pear\napple\n"});
  if (!sorted) return std::unexpected(sorted.error());
  std::cout << sorted->out;
  return {};
}

int main() {
  const auto done = run_command();
  if (done) return 0;
  std::cerr << done.error().message << "\n";
  return 1;
}
