// SPDX-License-Identifier: Apache-2.0
#include "cli/create_flags.h"

#include <fcntl.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_io.h"
#include "base/unique_fd.h"
#include "cli/default_image.h"
#include "model/duration.h"
#include "model/spec/builtin_tools.h"

namespace agbox::cli {

namespace {

// The largest request that the daemon accepts.
constexpr std::size_t kMaxYamlSize = std::size_t{4} << 20;

using Refusal = CreateRefusal;
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

// As completion and help show them.
std::string tool_choices() {
  std::string choices;
  for (const BuiltinTool& tool : builtin_tools()) {
    choices.append(choices.empty() ? "" : "|").append(tool.name);
  }
  return choices;
}

}  // namespace

CreateFlags::CreateFlags(CLI::App& command, Image image)
    : image_use_(image),
      labels_(command, "-l,--label", "Set a label (repeatable)"),
      envs_(command, "-e,--env", "Set an environment variable (repeatable)"),
      mounts_(command),
      ports_(command) {
  const auto text = [&command](const std::string& name, std::string& value, const std::string& type,
                               const std::string& description) {
    return command.add_option(name, value, description)->type_name(type)->take_last();
  };
  if (image == Image::Flag) {
    image_ = kDefaultImage;
    image_flag_ = text("--image", image_, "IMAGE",
                       std::string("Container image (default ") + kDefaultImage + ")");
  } else if (image == Image::Override) {
    image_flag_ =
        text("--image", image_, "IMAGE",
             std::string("Container image (default: the agent's, or ") + kDefaultImage + ")");
  } else {
    image_flag_ = command.add_option("image", image_, "Container image")->required();
  }
  text("--sandbox-id,--name", sandbox_id_, "ID",
       "Sandbox ID, never reused: 4 to 200 letters, digits, - and _ (default: generated)");
  idle_ttl_flag_ =
      text("--idle-ttl", idle_ttl_, "DURATION",
           std::string("Stop the sandbox after this long without an exec, e.g. 1h; at least 1s "
                       "(0 = never; default: ") +
               (image == Image::Override ? "240h, or never if the agent is long-running)"
                                         : "runtime.idle_ttl of the daemon, 30m if not set)"));
  text("--cpu-limit,--cpus", cpu_limit_, "CPUS",
       "CPU limit, e.g. 1.5; at most the CPUs of the engine");
  text("-m,--memory-limit,--memory", memory_limit_, "SIZE", "Memory limit, e.g. 2g; at least 6m");
  text("--disk-limit", disk_limit_, "SIZE",
       "Limit of the sandbox's own files, e.g. 10g; not every engine can");
  text("--gpus", gpus_, "all", "Give the sandbox all NVIDIA GPUs of the host");
  // Raw, as in KeyValueFlag.
  copies_ = command
                .add_option(
                    "--copy", [](const CLI::results_t&) { return true; },
                    "Copy a file or directory of the host, e.g. .:/workspace (repeatable)")
                ->take_all()
                ->type_name("HOST:CONTAINER");
  builtin_tools_ = command
                       .add_option(
                           "--builtin-tool", [](const CLI::results_t&) { return true; },
                           "Show the sandbox what a tool of the host needs (repeatable)")
                       ->take_all()
                       ->type_name(tool_choices());
  command.add_flag("--no-entrypoint", bypass_entrypoint_, "Ignore the image's ENTRYPOINT");
  yaml_file_flag_ =
      text("--yaml-file", yaml_file_, "PATH",
           "Read the sandbox configuration from a file, the only way to declare services "
           "and companions; flags override it");
}

std::expected<v1::CreateSandboxRequest, CreateRefusal> CreateFlags::request(
    const std::vector<std::string>& command) const {
  v1::CreateSandboxRequest request;
  request.set_sandbox_id(sandbox_id_);
  v1::CreateSpec& spec = *request.mutable_create_spec();
  // The file may set the image; only an explicit --image overrides it.
  const bool is_from_yaml = yaml_file_flag_->count() > 0;
  if (!is_from_yaml || image_flag_->count() > 0) spec.set_image(image_);
  if (image_use_ == Image::Override && labels_.has_empty_key()) {
    return usage("--label key must not be empty");
  }
  const auto labels = labels_.values();
  if (!labels) return usage(labels.error());
  spec.mutable_labels()->insert(labels->begin(), labels->end());
  const auto envs = envs_.values();
  if (!envs) return usage(envs.error());
  spec.mutable_envs()->insert(envs->begin(), envs->end());
  const auto mounts = mounts_.values();
  if (!mounts) return usage(mounts.error());
  spec.mutable_mounts()->Assign(mounts->begin(), mounts->end());
  const auto ports = ports_.values();
  if (!ports) return usage(ports.error());
  spec.mutable_ports()->Assign(ports->begin(), ports->end());
  for (const std::string& text : copies_->results()) {
    auto copy = parse_copy(text);
    if (!copy) return std::unexpected(copy.error());
    *spec.add_copies() = std::move(*copy);
  }
  for (const std::string& text : builtin_tools_->results()) {
    const auto tool = parse_tool(text);
    if (!tool) return std::unexpected(tool.error());
    spec.add_builtin_tools(*tool);
  }
  if (idle_ttl_flag_->count() > 0) {
    auto ttl = parse_idle_ttl(idle_ttl_);
    if (!ttl) return std::unexpected(ttl.error());
    *spec.mutable_idle_ttl() = *ttl;
  }
  spec.mutable_command()->Assign(command.begin(), command.end());
  spec.set_cpu_limit(cpu_limit_);
  spec.set_memory_limit(memory_limit_);
  spec.set_disk_limit(disk_limit_);
  if (!gpus_.empty() && gpus_ != "all") {
    return usage("--gpus: unsupported value \"" + gpus_ +
                 "\"; currently only empty or \"all\" are supported");
  }
  spec.set_gpus(gpus_);
  spec.set_bypass_entrypoint(bypass_entrypoint_);
  if (is_from_yaml) {
    auto yaml = read_file(yaml_file_);
    if (!yaml) {
      return std::unexpected(
          Refusal{kRuntimeError, "read yaml file " + yaml_file_ + ": " + yaml.error()});
    }
    request.set_config_yaml(std::move(*yaml));
  }
  return request;
}

}  // namespace agbox::cli
