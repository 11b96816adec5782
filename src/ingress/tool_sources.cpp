// SPDX-License-Identifier: Apache-2.0
#include "ingress/tool_sources.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <ranges>
#include <system_error>
#include <utility>
#include <variant>

#include "base/open_beneath.h"
#include "base/overloaded.h"
#include "base/path_within.h"
#include "base/shown_path.h"
#include "base/utf8.h"
#include "ingress/escaping_links.h"
#include "ingress/file_identity.h"
#include "ingress/socket_walk.h"
#include "ingress/stat_failure.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

using Kind = ToolResource::Kind;

constexpr std::string_view kSshAgent = "ssh-agent";
constexpr std::string_view kPulseAudio = "pulse-audio";

std::unexpected<Error> refused(std::string_view tool, const Error& error) {
  return std::unexpected(error.within("builtin tool " + std::string(tool)));
}

std::unexpected<Error> refused(std::string_view tool, const std::string& message) {
  return refused(tool, Error(reason::kInvalidArgument, message));
}

using Outcome = std::variant<FoundResource, MissingResource>;

Outcome missing(const RequestedResource& requested, std::string why) {
  return MissingResource{.requested = requested, .why = std::move(why)};
}

// The home directory with its own links resolved: they are the host's.
Result<std::string> real_home(const std::filesystem::path& home) {
  const UniqueFd opened(::open(home.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!opened) {
    const bool is_exhausted = errno == EMFILE || errno == ENFILE;
    return fail(is_exhausted ? reason::kResourceExhausted : reason::kInvalidArgument,
                stat_failure(home.string(), errno));
  }
  if (auto path = path_of(opened.get())) return *std::move(path);
  return fail(reason::kInvalidArgument, stat_failure(home.string(), ENOENT));
}

// Without dots, and without a slash at its end.
std::string normal(const std::filesystem::path& path) {
  std::string text = path.lexically_normal().string();
  while (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

// Where a resource is. A link directly in the home directory is the user's own, and is followed
// once, by its text. All that comes after it may be the work of a sandbox that has a tool, and has
// to be opened without following a link.
std::string path_in_home(const std::filesystem::path& home, const std::string& real_home,
                         std::string_view source) {
  const std::filesystem::path wanted(source);
  const std::filesystem::path real(real_home);
  std::filesystem::path start = real / *wanted.begin();
  std::error_code problem;  // then it is no link
  if (const auto target = std::filesystem::read_symlink(start, problem); !problem) {
    const std::string configured = normal(home);
    const bool names_home = target.is_absolute() && is_path_within(normal(target), configured);
    start = real / (names_home ? target.lexically_normal().lexically_relative(configured) : target);
  }
  for (auto name = std::next(wanted.begin()); name != wanted.end(); ++name) start /= *name;
  return normal(start);
}

// Sets errno on failure.
UniqueFd open_without_links(const std::string& path) {
  return open_beneath(AT_FDCWD, path.c_str(), O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
}

// For a message: the first link on the way, or the path itself if there is none any more.
std::string first_link(const std::string& path) {
  std::filesystem::path so_far;
  std::error_code problem;
  for (const auto& name : std::filesystem::path(path)) {
    so_far /= name;
    if (std::filesystem::is_symlink(so_far, problem)) break;
  }
  return so_far.string();
}

// The directories that sandboxes may write to because of a tool, as far as this host has them.
std::vector<FileIdentity> writable_directories(const std::filesystem::path& home) {
  std::vector<FileIdentity> found;
  const auto real = real_home(home);
  if (!real) return found;
  for (const BuiltinTool& tool : builtin_tools()) {
    for (const ToolResource& resource : tool.resources) {
      if (!resource.is_writable || resource.kind == Kind::File || resource.kind == Kind::Socket) {
        continue;
      }
      const UniqueFd fd = open_without_links(path_in_home(home, *real, resource.source));
      if (const auto identity = fd ? identity_of(fd.get()) : std::nullopt) {
        found.push_back(*identity);
      }
    }
  }
  return found;
}

Result<Outcome> resolve_socket(const RequestedResource& requested, const ToolSockets& sockets,
                               const SourceRules& rules) {
  const auto known = sockets.find(requested.resource->id);
  if (known == sockets.end()) {
    return missing(requested, "SSH_AUTH_SOCK is required for ssh-agent tooling projection");
  }
  const std::string path = known->second.string();
  const auto unusable = [&](const Error& error) -> Result<Outcome> {
    if (error.reason() == reason::kResourceExhausted) return refused(requested.tool, error);
    return missing(requested, error.message());
  };
  auto walked = walk_to_socket(
      path, {.user = rules.user.uid, .sandbox_directories = writable_directories(rules.home)});
  if (!walked) return unusable(walked.error());
  auto source = pin_source({.fd = std::move(walked->fd),
                            .path = std::move(walked->path),
                            .asked = path,
                            .use = SourceUse::ToolSocket},
                           rules);
  if (!source) return unusable(source.error());
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

Result<Outcome> cannot_open(const RequestedResource& requested, const std::string& path,
                            const std::string& real, int error_number) {
  const bool is_required = requested.resource->is_required;
  if (error_number == ELOOP) {
    const std::string why = shown_path(first_link(real)) + ", on the way to " + shown_path(path) +
                            ", is a symbolic link that a sandbox could have made";
    const std::string remedy =
        "; make it a file or directory, or link it directly from HOME, to a path without links";
    if (is_required) return refused(requested.tool, why + remedy);
    return missing(requested, why + remedy);
  }
  const std::string failure = stat_failure(path, error_number);
  if (error_number == EMFILE || error_number == ENFILE) {
    return refused(requested.tool, Error(reason::kResourceExhausted, failure));
  }
  const bool is_missing = error_number == ENOENT || error_number == ENOTDIR;
  if (is_missing && !is_required) return missing(requested, failure);
  if (is_missing) {
    return refused(requested.tool, failure + "; start " + std::string(requested.tool) +
                                       " on this host once, or leave the tool out");
  }
  return refused(requested.tool,
                 failure + "; make it accessible to the daemon's user, or leave the tool out");
}

Result<Outcome> resolve_path(const RequestedResource& requested, const SourceRules& rules) {
  const ToolResource& resource = *requested.resource;
  if (!rules.home.is_absolute()) {
    return refused(requested.tool,
                   "agboxd has no HOME, below which it looks for " + std::string(resource.source));
  }
  const std::string path = (rules.home / resource.source).lexically_normal().string();
  auto home = real_home(rules.home);
  if (!home) return refused(requested.tool, home.error());
  std::string real = path_in_home(rules.home, *home, resource.source);
  UniqueFd fd = open_without_links(real);
  if (!fd) return cannot_open(requested, path, real, errno);
  auto source = pin_source(
      {.fd = std::move(fd),
       .path = std::move(real),
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

std::string name_of(const RequestedResource& requested) {
  return "builtin tool " + std::string(requested.tool) + " resource " +
         std::string(requested.resource->id);
}

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
    if (rules.inspected != nullptr) rules.inspected->set(name_of(one));
    AGBOX_TRY(outcome, one.resource->kind == Kind::Socket ? resolve_socket(one, sockets, rules)
                                                          : resolve_path(one, rules));
    std::visit(Overloaded{[&](FoundResource&& it) { resolved.found.push_back(std::move(it)); },
                          [&](MissingResource&& it) { resolved.missing.push_back(std::move(it)); }},
               std::move(outcome));
  }
  return resolved;
}

std::vector<std::string> tool_warnings(const v1::CreateSpec& spec, const ResolvedTools& resolved) {
  std::vector<std::string> warnings;
  for (const BuiltinTool& tool : builtin_tools()) {
    if (std::ranges::find(spec.builtin_tools(), tool.name) == spec.builtin_tools().end()) continue;
    const auto is_of_tool = [&tool](const auto& one) {
      const std::string_view id = one.requested.resource->id;
      return std::ranges::find(tool.resources, id, &ToolResource::id) != tool.resources.end();
    };
    if (std::ranges::any_of(resolved.found, is_of_tool)) continue;
    std::string reasons;
    for (const MissingResource& missing : resolved.missing | std::views::filter(is_of_tool)) {
      reasons.append(reasons.empty() ? "" : "; ").append(missing.requested.resource->id);
      reasons.append(": ").append(missing.why);
    }
    warnings.push_back(
        to_utf8("builtin tool " + std::string(tool.name) + " shows nothing: " + reasons));
  }
  for (const FoundResource& found : resolved.found) {
    if (found.unsearched.empty()) continue;
    warnings.push_back(to_utf8(
        "builtin tool " + std::string(found.requested.tool) + ": " + shown_path(found.source.path) +
        " is mounted although not all of its symbolic links were inspected: " + found.unsearched));
  }
  return warnings;
}

}  // namespace agbox
