// SPDX-License-Identifier: Apache-2.0
// agbox sandbox create: creates a sandbox and waits until it is ready.
#include <agbox/sandbox_wait.h>
#include <fcntl.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cerrno>
#include <expected>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/default_image.h"
#include "cli/format/elapsed.h"
#include "cli/format/message_json.h"
#include "cli/format/phase_report.h"
#include "cli/format/printable.h"
#include "cli/interrupt.h"
#include "cli/key_value_flag.h"
#include "cli/mount_flags.h"
#include "cli/port_flag.h"
#include "model/duration.h"
#include "model/spec/builtin_tools.h"

namespace agbox::cli {

namespace {

// The largest request that the daemon accepts.
constexpr std::size_t kMaxYamlSize = std::size_t{4} << 20;

struct CreateFlags {
  explicit CreateFlags(CLI::App& command)
      : labels(command, "--label", "Set a label (repeatable)"),
        envs(command, "-e,--env", "Set an environment variable (repeatable)"),
        mounts(command),
        ports(command) {}

  KeyValueFlag labels;
  KeyValueFlag envs;
  MountFlags mounts;
  PortFlag ports;
  CLI::Option* copies = nullptr;
  CLI::Option* builtin_tools = nullptr;
  std::string image = kDefaultImage;
  std::string sandbox_id;
  std::string idle_ttl;
  std::string cpu_limit;
  std::string memory_limit;
  std::string disk_limit;
  std::string gpus;
  std::string yaml_file;
  bool bypass_entrypoint = false;
  bool json = false;
  bool quiet = false;
  CLI::Option* image_flag = nullptr;
  CLI::Option* idle_ttl_flag = nullptr;
  CLI::Option* yaml_file_flag = nullptr;
  std::vector<std::string> command;
};

// Why the command line was rejected, and the exit code.
struct Refusal {
  ExitCode code;
  std::string message;
};
template <class T>
using Parsed = std::expected<T, Refusal>;

std::unexpected<Refusal> usage(std::string message) {
  return std::unexpected(Refusal{kUsageError, std::move(message)});
}

// The daemon has another working directory than the caller. "~" is for it to expand.
std::string absolute_source(const std::string& source) {
  if (source.starts_with('/') || source.starts_with('~')) return source;
  std::error_code problem;  // then the daemon refuses the path as it is
  const std::filesystem::path here = std::filesystem::current_path(problem);
  return problem ? source : (here / source).lexically_normal().string();
}

Parsed<google::protobuf::Duration> parse_idle_ttl(const std::string& text) {
  const auto ttl = parse_duration(text);
  if (!ttl) {
    return usage("--idle-ttl: invalid duration \"" + text + "\": use for example 30m, 1h30m or 0");
  }
  if (ttl->count() < 0) return usage("--idle-ttl must not be negative");
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(ttl->count());
}

// The first colon separates: a path inside may contain one, as the name of a file.
Parsed<v1::CopySpec> parse_copy(const std::string& text) {
  const auto refused = [&text](std::string_view why) {
    return usage("--copy \"" + text + "\": " + std::string(why));
  };
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return refused("must be host:container");
  const std::string source = text.substr(0, colon);
  const std::string target = text.substr(colon + 1);
  if (source.empty() || target.empty()) return refused("source and target must be non-empty");
  for (const std::string_view mode : {":ro", ":rw", ":writable"}) {
    if (target.ends_with(mode)) return refused("a copy has no mode; it is the sandbox's own");
  }
  v1::CopySpec copy;
  copy.set_source(absolute_source(source));
  copy.set_target(target);
  return copy;
}

Parsed<std::string> parse_tool(const std::string& name) {
  const auto tools = builtin_tools();
  if (std::ranges::find(tools, name, &BuiltinTool::name) != tools.end()) return name;
  return usage("--builtin-tool \"" + name + "\": must be one of " + builtin_tool_names());
}

// The error is the reason alone, without the path.
std::expected<std::string, std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto text = fd ? read_all(fd.get(), kMaxYamlSize) : std::unexpected(errno);
  if (text) return std::move(*text);
  if (text.error() != EFBIG) return std::unexpected(std::generic_category().message(text.error()));
  return std::unexpected("has more than " + std::to_string(kMaxYamlSize) + " bytes");
}

Parsed<v1::CreateSandboxRequest> request_of(const CreateFlags& flags) {
  v1::CreateSandboxRequest request;
  request.set_sandbox_id(flags.sandbox_id);
  v1::CreateSpec& spec = *request.mutable_create_spec();
  // The file may set the image; only an explicit --image overrides it.
  const bool is_from_yaml = flags.yaml_file_flag->count() > 0;
  if (!is_from_yaml || flags.image_flag->count() > 0) spec.set_image(flags.image);
  const auto labels = flags.labels.values();
  if (!labels) return usage(labels.error());
  spec.mutable_labels()->insert(labels->begin(), labels->end());
  const auto envs = flags.envs.values();
  if (!envs) return usage(envs.error());
  spec.mutable_envs()->insert(envs->begin(), envs->end());
  const auto mounts = flags.mounts.values();
  if (!mounts) return usage(mounts.error());
  spec.mutable_mounts()->Assign(mounts->begin(), mounts->end());
  const auto ports = flags.ports.values();
  if (!ports) return usage(ports.error());
  spec.mutable_ports()->Assign(ports->begin(), ports->end());
  for (const std::string& text : flags.copies->results()) {
    auto copy = parse_copy(text);
    if (!copy) return std::unexpected(copy.error());
    *spec.add_copies() = std::move(*copy);
  }
  for (const std::string& text : flags.builtin_tools->results()) {
    const auto tool = parse_tool(text);
    if (!tool) return std::unexpected(tool.error());
    spec.add_builtin_tools(*tool);
  }
  if (flags.idle_ttl_flag->count() > 0) {
    auto ttl = parse_idle_ttl(flags.idle_ttl);
    if (!ttl) return std::unexpected(ttl.error());
    *spec.mutable_idle_ttl() = *ttl;
  }
  spec.mutable_command()->Assign(flags.command.begin(), flags.command.end());
  spec.set_cpu_limit(flags.cpu_limit);
  spec.set_memory_limit(flags.memory_limit);
  spec.set_disk_limit(flags.disk_limit);
  if (!flags.gpus.empty() && flags.gpus != "all") {
    return usage("--gpus: unsupported value \"" + flags.gpus +
                 "\"; currently only empty or \"all\" are supported");
  }
  spec.set_gpus(flags.gpus);
  spec.set_bypass_entrypoint(flags.bypass_entrypoint);
  if (is_from_yaml) {
    auto yaml = read_file(flags.yaml_file);
    if (!yaml) {
      return std::unexpected(
          Refusal{kRuntimeError, "read yaml file " + flags.yaml_file + ": " + yaml.error()});
    }
    request.set_config_yaml(std::move(*yaml));
  }
  return request;
}

// As completion and help show them.
std::string tool_choices() {
  std::string choices;
  for (const BuiltinTool& tool : builtin_tools()) {
    choices.append(choices.empty() ? "" : "|").append(tool.name);
  }
  return choices;
}

int report_not_ready(Console& console, const std::string& id, const Interrupt& interrupt,
                     const sdk::Error& error) {
  const std::string remove = "agbox sandbox delete " + id;
  switch (error.kind) {
    case sdk::ErrorKind::Cancelled:
      console.error("Stopped waiting; the daemon keeps creating sandbox " + id + ".\n" +
                    "  Show sandbox:       agbox sandbox get " + id +
                    "\n  Delete sandbox:     " + remove);
      return interrupt.exit_code();
    case sdk::ErrorKind::SandboxFailed:
      console.error(error.message + "\n  Delete sandbox:     " + remove);
      return kRuntimeError;
    default:
      return fail_call(console, "wait for sandbox ready", error);
  }
}

// What a shadow copy lacks is known only when it was made.
v1::SandboxHandle with_warnings(const sdk::RawClient& client, const v1::SandboxHandle& created) {
  if (std::ranges::none_of(created.builtin_resources(), &v1::BuiltinResource::shadow_copy)) {
    return created;
  }
  v1::GetSandboxRequest request;
  request.set_sandbox_id(created.sandbox_id());
  const auto response = client.get_sandbox(request);
  return response ? response->sandbox() : created;
}

int create_sandbox(Console& console, const CreateFlags& flags) {
  const auto request = request_of(flags);
  if (!request) {
    console.error(request.error().message);
    return request.error().code;
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const SystemClock clock;
  const BootTime began = clock.boot_now();
  const auto created = client->create_sandbox(*request, kNoTimeout);
  if (!created) return fail_call(console, "create sandbox", created.error());
  if (flags.json) {
    console.out(message_json(*created));
    return kSuccess;
  }

  const std::string& id = created->sandbox().sandbox_id();
  const Interrupt interrupt;
  PhaseReport phases(console, clock);
  // A short command may be done, and its sandbox stopped, before the state is read.
  sdk::WaitOptions waiting{.follow = {.stop = interrupt.token()}, .baseline = created->sandbox()};
  if (!flags.quiet) {
    console.error("Waiting for sandbox " + id + " to be ready...");
    waiting.on_event = [&phases](const v1::SandboxEvent& event) { phases.show(event); };
  }
  const auto ready = sdk::wait_for_sandbox(*client, id, sdk::SandboxGoal::Ready, waiting);
  if (!ready) return report_not_ready(console, id, interrupt, ready.error());
  const v1::SandboxHandle sandbox = with_warnings(*client, created->sandbox());
  for (const std::string& warning : sandbox.warnings()) {
    console.error("Warning: " + printable_line(warning));
  }
  if (flags.quiet) {
    console.out(printable_line(id) + "\n");
    return kSuccess;
  }
  console.error("Sandbox ready in " + seconds_text(clock.boot_now() - began) +
                ".\n  Show sandbox:       agbox sandbox get " + id +
                "\n  Delete sandbox:     agbox sandbox delete " + id);
  return kSuccess;
}

}  // namespace

void add_sandbox_create(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(
      parent, "create", "Create a sandbox, optionally with a command to run in it", create_sandbox);
  const auto text = [&command](const std::string& name, std::string& value, const std::string& type,
                               const std::string& description) {
    return command.add_option(name, value, description)->type_name(type)->take_last();
  };
  flags.image_flag = text("--image", flags.image, "IMAGE",
                          std::string("Container image (default ") + kDefaultImage + ")");
  text("--sandbox-id", flags.sandbox_id, "ID",
       "Sandbox ID, never reused: 4 to 200 letters, digits, - and _ (default: generated)");
  flags.idle_ttl_flag =
      text("--idle-ttl", flags.idle_ttl, "DURATION",
           "Stop the sandbox after this long without an exec, e.g. 1h; at least 1s (0 = never; "
           "default: runtime.idle_ttl of the daemon, 30m if not set)");
  text("--cpu-limit", flags.cpu_limit, "CPUS",
       "CPU limit, e.g. 1.5; at most the CPUs of the engine");
  text("--memory-limit", flags.memory_limit, "SIZE", "Memory limit, e.g. 2g; at least 6m");
  text("--disk-limit", flags.disk_limit, "SIZE",
       "Limit of the sandbox's own files, e.g. 10g; not every engine can");
  text("--gpus", flags.gpus, "all", "Give the sandbox all NVIDIA GPUs of the host");
  // Raw, as in KeyValueFlag.
  flags.copies = command
                     .add_option(
                         "--copy", [](const CLI::results_t&) { return true; },
                         "Copy a file or directory of the host, e.g. .:/workspace (repeatable)")
                     ->take_all()
                     ->type_name("HOST:CONTAINER");
  flags.builtin_tools = command
                            .add_option(
                                "--builtin-tool", [](const CLI::results_t&) { return true; },
                                "Show the sandbox what a tool of the host needs (repeatable)")
                            ->take_all()
                            ->type_name(tool_choices());
  command.add_flag("--no-entrypoint", flags.bypass_entrypoint, "Ignore the image's ENTRYPOINT");
  flags.yaml_file_flag =
      text("--yaml-file", flags.yaml_file, "PATH",
           "Read the sandbox configuration from a file, the only way to declare services "
           "and companions; flags override it");
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print the response as JSON and do not wait");
  command.add_flag("-q,--quiet", flags.quiet, "Print only the sandbox ID")->excludes(json);
  line.accepts_args_after_dashes(command, flags.command);
}

}  // namespace agbox::cli
