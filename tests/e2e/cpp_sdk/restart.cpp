// SPDX-License-Identifier: Apache-2.0
// A program of the installed C++ SDK during which tests/e2e/test_cpp_sdk.py kills the daemon: a
// session with input, a wait and the events continue. Its exit code and output say what failed.
#include <agbox/agbox.h>

#include <future>
#include <iostream>
#include <string>

namespace {

void ask(const std::string& what) {
  std::cout << "ask " << what << std::endl;
  std::string answer;
  std::getline(std::cin, answer);
}

agbox::Error wrong(const std::string& what) {
  return {.message = "unexpected: " + what};
}

// The next output, joined up to a line.
agbox::Result<std::string> read_line(agbox::Process& process) {
  std::string line;
  while (!line.ends_with('\n')) {
    const auto chunk = process.next();
    if (!chunk) return std::unexpected(chunk.error());
    if (!*chunk) return std::unexpected(wrong("the end of the output after " + line));
    line += (*chunk)->bytes;
  }
  return line;
}

agbox::Result<void> use_across_a_restart() {
  const auto client = agbox::Client::open();
  if (!client) return std::unexpected(client.error());
  auto box = client->create({.image = "debian:12", .id = "restart"});
  if (!box) return std::unexpected(box.error());
  auto process = box->start(
      {.args = {"sh", "-c", "echo one; read word; echo $word; exit 7"}, .takes_input = true});
  if (!process) return std::unexpected(process.error());
  const auto one = read_line(*process);
  if (!one) return std::unexpected(one.error());
  if (*one != "one\n") return std::unexpected(wrong(*one));
  auto stopped =
      std::async(std::launch::async, [&] { return box->wait_for(agbox::SandboxState::Stopped); });
  auto events = box->events();
  std::uint64_t sequence = 0;
  while (sequence < 3) {
    const auto event = events.next();
    if (!event) return std::unexpected(event.error());
    sequence = (*event)->sequence;
  }

  ask("kill_daemon");
  if (auto written = process->write("two\n"); !written) return written;
  ask("start_daemon");

  const auto two = read_line(*process);
  if (!two) return std::unexpected(two.error());
  if (*two != "two\n") return std::unexpected(wrong(*two));
  const auto result = process->wait();
  if (!result) return std::unexpected(result.error());
  if (result->exit_code != 7) return std::unexpected(wrong(result->error));
  for (const auto& event : events) {
    if (!event) return std::unexpected(event.error());
    if (event->sequence != ++sequence) return std::unexpected(wrong("a gap in the events"));
    if (event->exec && event->exec->exit_code == 7) break;
  }
  if (auto asked = box->stop(); !asked) return asked;
  if (auto waited = stopped.get(); !waited) return waited;
  return box->remove();
}

}  // namespace

int main() {
  const auto done = use_across_a_restart();
  if (done) return 0;
  std::cout << done.error().message << std::endl;
  return 1;
}
