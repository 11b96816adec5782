// SPDX-License-Identifier: Apache-2.0
// agboxd: from the command line to a running Daemon, in the order that its exit codes promise.
#include <google/protobuf/stubs/logging.h>
#include <sys/resource.h>
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
#include "paths/fixed_paths.h"

namespace {

using namespace agbox;

constexpr int kExitUsage = 2;  // arguments, paths, configuration: starting again does not help

int print(const std::string& text) {
  return std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? EXIT_FAILURE
                                                                          : EXIT_SUCCESS;
}

int refuse(const std::string& sentence, int exit_code) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  return exit_code;
}

// One subscriber is one connection, and the usual limit of 1024 is for programs that use select().
void allow_many_connections() {
  constexpr rlim_t kEnough = 65'536;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, kEnough));
  ::setrlimit(RLIMIT_NOFILE, &limit);  // where it fails, the old limit holds
}

// Protobuf's own messages, which it would print to stderr between our lines. Broken data from
// outside causes them, and a process in a sandbox can send it as often as it likes; the reader of
// the data reports it, at a limited rate.
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

  ::umask(077);  // nothing that we make is for other users
  google::protobuf::SetLogHandler(log_protobuf_message);
  allow_many_connections();
  return serve();
}
