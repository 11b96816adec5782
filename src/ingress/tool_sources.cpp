// SPDX-License-Identifier: Apache-2.0
#include "ingress/tool_sources.h"

#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <variant>

#include "base/overloaded.h"
#include "base/shown_path.h"
#include "ingress/escaping_links.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

using Kind = ToolResource::Kind;

constexpr std::string_view kSshAgent = "ssh-agent";
constexpr std::string_view kPulseAudio = "pulse-audio";

// As existing clients know it: "stat /x: no such file or directory".
std::string stat_failure(const std::string& path, int error_number) {
  std::string text = std::strerror(error_number);
  text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return "stat " + path + ": " + text;
}

std::unexpected<Error> refused(std::string_view tool, const Error& error) {
  return std::unexpected(error.within("builtin tool " + std::string(tool)));
}

std::unexpected<Error> refused(std::string_view tool, const std::string& message) {
  return refused(tool, Error(reason::kInvalidArgument, message));
}

// All links resolved, those of the last component too: many keep their configuration elsewhere.
// Sets errno on failure.
std::optional<std::string> real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  if (!real) return std::nullopt;
  return std::string(real.get());
}

using Outcome = std::variant<FoundResource, MissingResource>;

Outcome missing(const RequestedResource& requested, std::string why) {
  return MissingResource{.requested = requested, .why = std::move(why)};
}

Result<Outcome> resolve_socket(const RequestedResource& requested, const ToolSockets& sockets,
                               const SourceRules& rules) {
  const auto known = sockets.find(requested.resource->id);
  if (known == sockets.end()) {
    return missing(requested, "SSH_AUTH_SOCK is required for ssh-agent tooling projection");
  }
  const std::string path = known->second.string();
  const auto real = real_path(path);
  if (!real) return missing(requested, stat_failure(path, errno));
  auto source = pin_source({.path = *real, .asked = path, .use = SourceUse::ToolSocket}, rules);
  if (!source && source.error().reason() == reason::kResourceExhausted) {
    return refused(requested.tool, source.error());
  }
  if (!source) return missing(requested, source.error().message());
  struct stat status{};
  if (::fstat(source->fd.get(), &status) != 0) return missing(requested, stat_failure(path, errno));
  if (!S_ISSOCK(status.st_mode)) return missing(requested, path + " is not a Unix socket");
  if (status.st_uid != rules.user.uid) {
    return missing(requested, path + " belongs to uid " + std::to_string(status.st_uid) +
                                  ", not to the daemon's user");
  }
  return FoundResource{.requested = requested, .source = std::move(*source)};
}

Result<> check_kind(const PinnedSource& source, const RequestedResource& requested) {
  struct stat status{};
  if (::fstat(source.fd.get(), &status) != 0) {
    return refused(requested.tool, stat_failure(source.path, errno));
  }
  const bool wants_file = requested.resource->kind == Kind::File;
  if (wants_file ? S_ISREG(status.st_mode) : S_ISDIR(status.st_mode)) return {};
  return refused(requested.tool, "source " + shown_path(source.path) + " is not a " +
                                     (wants_file ? "regular file" : "directory") +
                                     "; move it away, or leave the tool out");
}

Result<Outcome> resolve_path(const RequestedResource& requested, const SourceRules& rules) {
  const ToolResource& resource = *requested.resource;
  if (!rules.home.is_absolute()) {
    return refused(requested.tool,
                   "agboxd has no HOME, below which it looks for " + std::string(resource.source));
  }
  const std::string path = (rules.home / resource.source).lexically_normal().string();
  const auto real = real_path(path);
  const int problem = errno;
  const bool is_missing = !real && (problem == ENOENT || problem == ENOTDIR);
  if (is_missing && !resource.is_required) {
    return missing(requested, stat_failure(path, problem));
  }
  if (is_missing) {
    return refused(requested.tool, stat_failure(path, problem) + "; start " +
                                       std::string(requested.tool) +
                                       " on this host once, or leave the tool out");
  }
  if (!real) {
    return refused(requested.tool, stat_failure(path, problem) +
                                       "; make it accessible to the "
                                       "daemon's user, or leave the "
                                       "tool out");
  }
  auto source = pin_source(
      {.path = *real,
       .asked = path,
       .is_writable = resource.is_writable,
       .use = resource.kind == Kind::File ? SourceUse::ToolFile : SourceUse::ToolDirectory},
      rules);
  if (!source) return refused(requested.tool, source.error());
  AGBOX_TRY_VOID(check_kind(*source, requested));
  FoundResource found{.requested = requested, .source = std::move(*source)};
  // What is read-only cannot be harmed.
  if (resource.kind == Kind::Directory && resource.is_writable) {
    auto scan = find_escaping_link(found.source.fd.get(), found.source.path);
    found.is_shadow_copied = scan.link.has_value();
    found.unsearched = std::move(scan.unsearched);
  }
  return found;
}

}  // namespace

ToolSockets tool_sockets(const std::map<std::string, std::string>& environment, uid_t user) {
  const auto value = [&environment](const std::string& name) -> std::filesystem::path {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  ToolSockets sockets;
  if (const auto agent = value("SSH_AUTH_SOCK"); !agent.empty()) {
    std::error_code problem;  // then the path stays as it is, and is not found
    const auto absolute = std::filesystem::absolute(agent, problem);
    sockets[kSshAgent] = problem ? agent : absolute;
  }
  auto runtime = value("XDG_RUNTIME_DIR");
  if (runtime.empty()) runtime = "/run/user/" + std::to_string(user);
  sockets[kPulseAudio] = runtime / "pulse/native";
  return sockets;
}

Result<ResolvedTools> resolve_tools(const std::vector<RequestedResource>& requested,
                                    const ToolSockets& sockets, const SourceRules& rules) {
  ResolvedTools resolved;
  for (const RequestedResource& one : requested) {
    AGBOX_TRY(outcome, one.resource->kind == Kind::Socket ? resolve_socket(one, sockets, rules)
                                                          : resolve_path(one, rules));
    std::visit(Overloaded{[&](FoundResource&& it) { resolved.found.push_back(std::move(it)); },
                          [&](MissingResource&& it) { resolved.missing.push_back(std::move(it)); }},
               std::move(outcome));
  }
  return resolved;
}

}  // namespace agbox
