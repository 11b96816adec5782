// SPDX-License-Identifier: Apache-2.0
// agboxd: from the command line to a running Daemon, in the order documented by its exit codes.
#include <google/protobuf/stubs/logging.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/capability.h"
#include "base/log.h"
#include "daemon/arguments.h"
#include "daemon/configuration.h"
#include "daemon/daemon.h"
#include "daemon/descriptor_limits.h"
#include "paths/fixed_paths.h"

namespace {

using namespace agbox;

constexpr int kExitUsage = 2;  // arguments, paths, configuration: a restart does not help

int print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? EXIT_FAILURE
                                                                          : EXIT_SUCCESS;
}

int refuse(const std::string& message, int exit_code) {
  std::fprintf(stderr, "%s\n", message.c_str());
  return exit_code;
}

// Protobuf's own messages, which would otherwise appear on stderr between our lines. A process in a
// sandbox can cause them at any rate; the code that parses the data reports it, rate-limited.
void log_protobuf_message(google::protobuf::LogLevel level, const char*, int,
                          const std::string& message) {
  const Logger log = Logger().with({"daemon", "agboxd"}).with({"library", "protobuf"});
  level == google::protobuf::LOGLEVEL_FATAL ? log.error(message) : log.debug(message);
}

int serve() {
  const Environment environment = current_environment();
  const auto paths = resolve_fixed_paths(current_platform(), environment);
  if (!paths) return refuse(paths.error().message(), kExitUsage);
  const auto configuration = load_configuration(*paths);
  if (!configuration) return refuse(configuration.error().message(), kExitUsage);
  set_log_level(configuration->log_level);
  const Logger log = Logger().with({"daemon", "agboxd"}).with({"version", AGBOX_VERSION});
  return Daemon(*paths, *configuration, environment, log).run();
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::string> given(arguments + std::min(argument_count, 1),
                                       arguments + argument_count);
  const auto invocation = parse_arguments(given);
  if (invocation == Invocation::ShowHelp) return print(help_text());
  if (invocation == Invocation::ShowVersion) return print("agboxd " AGBOX_VERSION "\n");
  if (!has_net_admin_capability()) {
    return refuse(
        "AgentsSandbox daemon requires CAP_NET_ADMIN for sandbox network isolation.\n"
        "Grant it with: sudo setcap cap_net_admin+ep $(which agboxd)",
        EXIT_FAILURE);
  }
  if (!invocation) return refuse(invocation.error().message(), kExitUsage);

  ::umask(077);  // no file is for other users
  google::protobuf::SetLogHandler(log_protobuf_message);
  raise_descriptor_limit();
  return serve();
}
