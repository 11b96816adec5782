// SPDX-License-Identifier: Apache-2.0
// agbox-guest: PID 1 of a sandbox's primary container, what runs commands in its companions, and
// its helper commands.
#include <unistd.h>

#include <string_view>

#include "guest/enter.h"
#include "guest/init.h"
#include "guest/receive.h"
#include "guest/transfer.h"

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "true") return 0;
  if (verb == "enter") return agbox::guest::enter(argv + 2);
  if (verb == "receive") return agbox::guest::receive(argv + 2);
  if (verb == "put") return agbox::guest::put(argv + 2);
  if (verb == "get") return agbox::guest::get(argv + 2);
  if (verb == "join" && argc == 3) return agbox::guest::Init::join(argv[2]);
  if (argc == 1 && ::getpid() == 1) return agbox::guest::Init::run();
  constexpr std::string_view kUsage =
      "agbox-guest is run by agboxd in the containers of a sandbox; it has no other use\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kUsage.data(), kUsage.size());
  return 2;
}
