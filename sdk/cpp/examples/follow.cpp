// SPDX-License-Identifier: Apache-2.0
// Follows the output of a command, uses a terminal, and reads the events of the sandbox.
#include <agbox/agbox.h>

#include <chrono>
#include <iostream>

agbox::Result<void> follow_output(const agbox::Sandbox& box) {
  auto process = box.start(agbox::shell("echo one; echo two >&2"));
  if (!process) return std::unexpected(process.error());
  for (const auto& chunk : *process) {
    if (!chunk) return std::unexpected(chunk.error());
    const bool is_stderr = chunk->stream == agbox::OutputStream::Stderr;
    (is_stderr ? std::cerr : std::cout) << chunk->bytes;
  }
  auto result = process->wait();
  if (!result) return std::unexpected(result.error());
  std::cout << to_string(result->state) << "\n";
  return {};
}

agbox::Result<void> use_terminal(const agbox::Sandbox& box) {
  auto shell = box.start({.args = {"sh"}, .terminal = agbox::Terminal{.rows = 24, .columns = 80}});
  if (!shell) return std::unexpected(shell.error());
  shell->resize(50, 132);
  if (auto typed = shell->write("stty size; exit 5\n"); !typed) return typed;
  auto result = shell->wait({.wait_timeout = std::chrono::seconds(30)});
  if (!result) return std::unexpected(result.error());
  std::cout << "code " << result->exit_code << "\n";
  return {};
}

agbox::Result<void> follow_events(const agbox::Sandbox& box) {
  for (const auto& event : box.events()) {
    if (!event) return std::unexpected(event.error());
    std::cout << event->sequence << " " << to_string(event->type) << "\n";
    if (event->type == agbox::EventType::SandboxReady) break;
  }
  return {};
}

int main() {
  const auto done = [] -> agbox::Result<void> {
    auto client = agbox::Client::open();
    if (!client) return std::unexpected(client.error());
    auto box = client->create({.image = "debian:12"});
    if (!box) return std::unexpected(box.error());
    if (auto followed = follow_output(*box); !followed) return followed;
    if (auto used = use_terminal(*box); !used) return used;
    return follow_events(*box);
  }();
  if (done) return 0;
  std::cerr << done.error().message << "\n";
  return 1;
}
