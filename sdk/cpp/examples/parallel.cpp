// SPDX-License-Identifier: Apache-2.0
// Runs a command in several sandboxes at the same time. The first error stops the others.
#include <agbox/agbox.h>

#include <iostream>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

agbox::Result<std::string> work(const agbox::Client& client, int number,
                                const std::stop_token& stop) {
  auto box =
      client.create({.image = "debian:12", .labels = {{"example", "parallel"}}}, {.stop = stop});
  if (!box) return std::unexpected(box.error());
  const std::string line = "echo $((" + std::to_string(number) + " * 111))";
  auto result = box->run(agbox::shell(line), {.stop = stop});
  if (!result) return std::unexpected(result.error());
  return result->out;
}

int main() {
  const auto client = agbox::Client::open();
  if (!client) {
    std::cerr << client.error().message << "\n";
    return 1;
  }
  std::stop_source stop;
  std::mutex mutex;  // of what the threads print
  std::vector<std::jthread> threads;
  for (int number = 1; number <= 3; ++number) {
    threads.emplace_back([&, number] {
      const auto printed = work(*client, number, stop.get_token());
      const std::lock_guard lock(mutex);
      if (printed) {
        std::cout << *printed;
      } else if (stop.request_stop()) {
        std::cerr << printed.error().message << "\n";
      }
    });
  }
  threads.clear();  // waits for them
  return stop.stop_requested() ? 1 : 0;
}
