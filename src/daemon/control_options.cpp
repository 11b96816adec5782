// SPDX-License-Identifier: Apache-2.0
#include "daemon/control_options.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "guestlink/guest_program.h"
#include "paths/engine_endpoint.h"
#include "place/local/host_resolvers.h"

namespace agbox {
namespace {

Result<> make_directory(const std::filesystem::path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);  // 0700: see the umask in main()
  if (!problem) return {};
  return fail(reason::kHostNotReady,
              "create runtime.state_root " + directory.string() + ": " + problem.message());
}

store::v1::CreatedWith created_with(const Configuration& configuration) {
  store::v1::CreatedWith kept;
  kept.set_state_root(configuration.state_root.string());
  kept.set_exec_output_root(configuration.exec_output_root.string());
  kept.set_exec_output_template(configuration.exec_output_template);
  kept.set_exec_output_max_bytes(configuration.exec_output_max);
  const auto dns =
      configuration.dns.empty() ? host_resolvers(host_resolver_files()) : configuration.dns;
  for (const Ipv4Address& resolver : dns) kept.add_dns(resolver.text());
  kept.set_host_uid(::getuid());
  kept.set_host_gid(::getgid());
  return kept;
}

}  // namespace

ControlOptions control_options(const Configuration& configuration, const FixedPaths& paths) {
  return {.lock_file = paths.lock,
          .ttls = {.idle = configuration.idle_ttl,
                   .cleanup = configuration.cleanup_ttl,
                   .history = configuration.event_retention_ttl},
          .pauses_unisolated = configuration.pauses_unisolated,
          .created_with = created_with(configuration)};
}

Result<LocalPlaceOptions> place_options(const Configuration& configuration, const FixedPaths& paths,
                                        const Environment& environment,
                                        const std::string& instance_id) {
  AGBOX_TRY_VOID(make_directory(configuration.state_root));
  std::error_code problem;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", problem);
  if (problem)
    return fail(reason::kHostNotReady, "locate our own executable: " + problem.message());
  AGBOX_TRY(guest_program, guestlink::find_guest_program(program));
  LocalPlaceOptions options{.instance_id = instance_id,
                            .state_root = configuration.state_root,
                            .guest_program = std::move(guest_program),
                            .output_root = configuration.exec_output_root};
  if (const auto home = environment.find("HOME"); home != environment.end()) {
    options.home = home->second;
  }
  options.tool_sockets = tool_sockets(environment, ::getuid());
  AGBOX_TRY(engine_socket, resolve_engine_socket(environment));
  // The socket also by itself: it may have a second name elsewhere.
  options.forbidden_sources = {paths.runtime_directory,   paths.socket,
                               paths.store.parent_path(), paths.config_file.parent_path(),
                               configuration.state_root,  configuration.exec_output_root,
                               std::move(engine_socket)};
  if (configuration.dns.empty()) options.resolver_files = host_resolver_files();
  return options;
}

}  // namespace agbox
