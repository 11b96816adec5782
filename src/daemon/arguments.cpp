// SPDX-License-Identifier: Apache-2.0
#include "daemon/arguments.h"

#include <algorithm>

namespace agbox {

Result<Invocation> parse_arguments(std::span<const std::string> arguments) {
  if (std::ranges::find(arguments, "--help") != arguments.end()) return Invocation::ShowHelp;
  if (std::ranges::find(arguments, "--version") != arguments.end()) return Invocation::ShowVersion;
  if (arguments.empty()) return Invocation::Serve;
  std::string joined;
  for (const std::string& argument : arguments) {
    if (!joined.empty()) joined += ' ';
    joined += argument;
  }
  return fail(reason::kInvalidArgument,
              "agboxd does not accept CLI path overrides: [" + joined + "]");
}

std::string help_text() {
  return R"(agboxd - the agents-sandbox daemon: runs coding agents in Docker sandboxes

Usage:
  agboxd              serve agbox and the client libraries until SIGTERM or SIGINT
  agboxd --help       print this text
  agboxd --version    print the version

Its paths are fixed and derived from XDG_RUNTIME_DIR, XDG_CONFIG_HOME, XDG_DATA_HOME and HOME:
  socket              $XDG_RUNTIME_DIR/agbox/agboxd.sock
  configuration       $XDG_CONFIG_HOME/agents-sandbox/config.toml (optional)
  store               $XDG_DATA_HOME/agents-sandbox/ids.db

It needs CAP_NET_ADMIN for the network isolation of sandboxes:
  sudo setcap cap_net_admin+ep $(which agboxd)

Signals:
  SIGTERM, SIGINT     shut down within 5 seconds; sandboxes keep running. A second one exits at once
  SIGHUP              ignored: restart the daemon to apply a changed configuration

Exit codes:
  0  clean shutdown by a signal
  1  could not start or continue: capability, lock, store, socket
  2  invalid arguments, paths or configuration
)";
}

}  // namespace agbox
