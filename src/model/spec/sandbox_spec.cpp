// SPDX-License-Identifier: Apache-2.0
#include "model/spec/sandbox_spec.h"

#include <google/protobuf/unknown_field_set.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "model/reasons.h"
#include "model/sandbox/time_to_live.h"
#include "model/spec/builtin_tools.h"
#include "model/spec/companions.h"
#include "model/spec/config_yaml.h"
#include "model/spec/image_reference.h"
#include "model/spec/ingress_paths.h"
#include "model/spec/maxima.h"
#include "model/spec/ports.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

Result<> check_image(const v1::CreateSpec& spec) {
  if (spec.image().empty()) return invalid_argument("create_spec.image is required");
  return {};
}

// Beyond what a clock counts in nanoseconds?
bool is_endless(const google::protobuf::Duration& ttl) {
  return ttl.seconds() > std::chrono::seconds(kLongestTtl).count();
}

std::chrono::nanoseconds nanoseconds_of(const google::protobuf::Duration& ttl) {
  return std::chrono::seconds(ttl.seconds()) + std::chrono::nanoseconds(ttl.nanos());
}

Result<std::optional<std::chrono::nanoseconds>> parse_idle_ttl(const v1::CreateSpec& spec) {
  if (!spec.has_idle_ttl()) return std::nullopt;
  AGBOX_TRY_VOID(check_duration("idle_ttl", spec.idle_ttl()));
  if (is_endless(spec.idle_ttl())) return std::chrono::nanoseconds(0);
  return nanoseconds_of(spec.idle_ttl());
}

Result<std::optional<std::chrono::nanoseconds>> parse_lease_ttl(const v1::CreateSpec& spec) {
  if (!spec.has_lease_ttl()) return std::nullopt;
  AGBOX_TRY_VOID(check_duration("lease_ttl", spec.lease_ttl()));
  if (is_endless(spec.lease_ttl())) return kLongestTtl;
  return nanoseconds_of(spec.lease_ttl());
}

// A shorter one would stop a sandbox before its first exec arrives.
Result<> check_idle_ttl(const v1::CreateSpec& spec) {
  AGBOX_TRY(ttl, parse_idle_ttl(spec));
  if (!ttl || *ttl == std::chrono::nanoseconds(0) || *ttl >= std::chrono::seconds(1)) return {};
  return invalid_argument("idle_ttl must be at least 1s; 0 disables the idle stop");
}

// A shorter one would delete a sandbox before the client that created it can hold it.
Result<> check_lease_ttl(const v1::CreateSpec& spec) {
  AGBOX_TRY(ttl, parse_lease_ttl(spec));
  if (!ttl || *ttl >= std::chrono::seconds(1)) return {};
  return invalid_argument("lease_ttl must be at least 1s; leave it out for a sandbox that is kept");
}

Result<> check_labels(const v1::CreateSpec& spec) {
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(spec.labels_size()), maxima::kLabels,
                         "the number of labels"));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  for (const auto& [key, value] : spec.labels()) {
    if (key.empty()) return invalid_argument("labels: a key must not be empty");
    if (std::ranges::any_of(key, is_control)) {
      return invalid_argument("labels: a key must not contain control characters");
    }
    AGBOX_TRY_VOID(at_most(key.size(), maxima::kLabelKeyBytes, "the size of a label's key"));
    AGBOX_TRY_VOID(
        at_most(value.size(), maxima::kLabelValueBytes, "the size of label " + key + "'s value"));
  }
  return {};
}

Result<> check_gpus(const v1::CreateSpec& spec) {
  if (spec.gpus().empty() || spec.gpus() == "all") return {};
  return invalid_argument("gpus: unsupported value " + quoted_excerpt(spec.gpus()) +
                          "; currently only empty or \"all\" are supported");
}

Result<> check_limits(const v1::CreateSpec& spec) {
  AGBOX_TRY_VOID(check_cpu_limit("cpu_limit", spec.cpu_limit()));
  AGBOX_TRY_VOID(check_memory_limit("memory_limit", spec.memory_limit()));
  AGBOX_TRY_VOID(check_disk_limit("disk_limit", spec.disk_limit()));
  return check_companion_limits(spec);
}

}  // namespace

Result<> check_cpus(const SandboxSpec& spec, std::int64_t cpus) {
  AGBOX_TRY_VOID(check_engine_cpus("cpu_limit", spec.create_spec.cpu_limit(), cpus));
  return check_companion_cpus(spec.create_spec, cpus);
}

Result<> check_disk_limit_support(const SandboxSpec& spec, const std::string& shortcoming) {
  if (!spec.disk_limit || shortcoming.empty()) return {};
  return fail(reason::kEngineRefused, shortcoming);
}

Result<> check_supported(const v1::CreateSpec& spec) {
  const auto& unknown = spec.GetReflection()->GetUnknownFields(spec);
  if (unknown.empty()) return {};
  return fail(reason::kUnimplemented,
              "create_spec has field number " + std::to_string(unknown.field(0).number()) +
                  ", which this version of agboxd does not know; leave it out, or upgrade agboxd");
}

// The order up to check_builtin_tools() is known to clients.
Result<SandboxSpec> parse_create_spec(v1::CreateSpec spec) {
  AGBOX_TRY_VOID(at_most(spec.ByteSizeLong(), maxima::kSpecBytes, "the size of create_spec"));
  AGBOX_TRY_VOID(check_image(spec));
  AGBOX_TRY_VOID(check_idle_ttl(spec));
  AGBOX_TRY_VOID(check_gpus(spec));
  AGBOX_TRY_VOID(check_reserved_names("envs", "CreateSpec.Envs", spec.envs()));
  AGBOX_TRY_VOID(clean_ingress_paths(spec));
  AGBOX_TRY_VOID(check_ports(spec));
  AGBOX_TRY_VOID(check_companions(spec));
  AGBOX_TRY_VOID(check_tokens("command", spec.command()));
  AGBOX_TRY_VOID(check_limits(spec));
  AGBOX_TRY_VOID(check_builtin_tools(spec));
  AGBOX_TRY_VOID(at_most(spec.image().size(), maxima::kImageBytes, "the size of image"));
  AGBOX_TRY_VOID(parse_image_reference(spec.image()));
  AGBOX_TRY_VOID(check_environment("envs", spec.envs()));
  AGBOX_TRY_VOID(check_labels(spec));
  AGBOX_TRY_VOID(check_lease_ttl(spec));
  AGBOX_TRY_VOID(check_supported(spec));
  return read_stored_spec(std::move(spec));
}

Result<SandboxSpec> read_stored_spec(v1::CreateSpec spec) {
  AGBOX_TRY_VOID(check_image(spec));
  AGBOX_TRY(idle_ttl, parse_idle_ttl(spec));
  AGBOX_TRY(lease_ttl, parse_lease_ttl(spec));
  AGBOX_TRY(cpu_limit, parse_limit<CpuLimit>("cpu_limit", "cpu_limit", spec.cpu_limit()));
  AGBOX_TRY(memory_limit,
            parse_limit<ByteLimit>("memory_limit", "memory_limit", spec.memory_limit()));
  AGBOX_TRY(disk_limit, parse_limit<ByteLimit>("disk_limit", "disk_limit", spec.disk_limit()));
  const std::size_t bytes = spec.ByteSizeLong();
  return SandboxSpec{.create_spec = std::move(spec),
                     .bytes = bytes,
                     .idle_ttl = idle_ttl,
                     .lease_ttl = lease_ttl,
                     .cpu_limit = cpu_limit,
                     .memory_limit = memory_limit,
                     .disk_limit = disk_limit};
}

Result<SandboxSpec> parse_create_request(const v1::CreateSandboxRequest& request) {
  if (!request.config_yaml().empty()) {
    auto file = parse_config_yaml(request.config_yaml());
    if (!file) return std::unexpected(file.error().within("invalid config_yaml"));
    return parse_create_spec(merge_create_specs(std::move(*file), request.create_spec()));
  }
  if (!request.has_create_spec()) return invalid_argument("create_spec is required");
  return parse_create_spec(request.create_spec());
}

}  // namespace agbox
