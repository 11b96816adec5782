// SPDX-License-Identifier: Apache-2.0
#include "paths/engine_endpoint.h"

#include <sys/un.h>

#include <string_view>

namespace agbox {

Result<std::string> resolve_engine_socket(const Environment& environment) {
  const auto found = environment.find("DOCKER_HOST");
  if (found == environment.end() || found->second.empty()) return "/var/run/docker.sock";
  const std::string& host = found->second;
  constexpr std::string_view kScheme = "unix://";
  if (!host.starts_with(kScheme)) {
    return fail(reason::kInvalidArgument,
                "DOCKER_HOST is " + host +
                    ", but sandboxes need a container engine on this machine: unset it or set it "
                    "to unix:///path/to/docker.sock");
  }
  std::string path = host.substr(kScheme.size());
  if (!path.starts_with('/') || path.contains('\0')) {
    return fail(reason::kInvalidArgument,
                "DOCKER_HOST is " + host + ", but a socket's path must be absolute (unix:///...)");
  }
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return fail(reason::kInvalidArgument,
                "DOCKER_HOST is " + host + ", but a socket's path is limited to " +
                    std::to_string(sizeof(sockaddr_un::sun_path) - 1) + " bytes");
  }
  return path;
}

}  // namespace agbox
