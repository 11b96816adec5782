// SPDX-License-Identifier: Apache-2.0
#include "model/spec/companions.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "model/spec/image_reference.h"
#include "model/spec/limits.h"
#include "model/spec/maxima.h"
#include "model/spec/request_checks.h"

namespace agbox {
namespace {

using google::protobuf::Duration;
using CompanionList = google::protobuf::RepeatedPtrField<v1::CompanionContainerSpec>;

// A /28 holds 13 containers, and one is the primary.
constexpr int kMaxCompanions = 12;
constexpr std::size_t kNameBytes = 63;  // a DNS label
constexpr std::int32_t kMillisecondNanos = 1'000'000;

struct CompanionField {
  std::string_view name;
  const CompanionList& companions;
};

std::array<CompanionField, 3> companion_fields(const v1::CreateSpec& spec) {
  return {{{"companion_containers", spec.companion_containers()},
           {"required_services", spec.required_services()},
           {"optional_services", spec.optional_services()}}};
}

// companion_containers[db]
std::string entry_name(const CompanionField& field, const v1::CompanionContainerSpec& companion) {
  return std::string(field.name) + "[" + excerpt(companion.name()) + "]";
}

std::string title(const v1::CompanionContainerSpec& companion) {
  return "companion container " + quoted_excerpt(companion.name());
}

// Two names that DNS considers equal have the same.
std::string dns_name(std::string name) {
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

// By the names as DNS compares them.
using Names = std::map<std::string, std::string>;

Result<> check_unique(const std::string& name, Names& names) {
  const auto [taken, is_new] = names.emplace(dns_name(name), name);
  if (is_new) return {};
  const std::string problem = "duplicate companion container name " + quoted_excerpt(name);
  if (taken->second == name) return invalid_argument(problem);
  return invalid_argument(problem + ": for DNS it is the same as " + quoted_excerpt(taken->second));
}

bool is_name(std::string_view name) {
  return name.size() <= kNameBytes && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_';
         });
}

Result<> check_probe(const std::string& whose, const v1::HealthcheckConfig& health) {
  const std::string test = whose + " healthcheck.test";
  if (health.test().empty()) return invalid_argument(test + " must not be empty");
  const std::string& kind = health.test(0);
  if (kind == "NONE") {
    if (health.test_size() == 1) return {};
    return invalid_argument(test + " must not include extra args when NONE is used");
  }
  if (kind != "CMD" && kind != "CMD-SHELL") {
    return invalid_argument(test + "[0] " + quoted_excerpt(kind) + " is invalid");
  }
  if (health.test_size() == 1) {
    return invalid_argument(test + " for " + kind + " must include a command");
  }
  for (int i = 1; i < health.test_size(); ++i) {
    if (!contains_nul(health.test(i))) continue;
    return invalid_argument(test + "[" + std::to_string(i) + "]: contains a NUL byte");
  }
  return at_most(static_cast<std::size_t>(health.test_size()), maxima::kCommandTokens,
                 "the number of entries of healthcheck.test");
}

Result<> check_probe_duration(const std::string& name, const Duration& duration) {
  AGBOX_TRY_VOID(check_duration(name, duration));
  // The minimum of container engines.
  if (duration.seconds() == 0 && duration.nanos() > 0 && duration.nanos() < kMillisecondNanos) {
    return invalid_argument(name + " must be at least 1ms; 0 means the default");
  }
  return {};
}

Result<> check_healthcheck(const std::string& whose, const v1::HealthcheckConfig& health) {
  AGBOX_TRY_VOID(check_probe(whose, health));
  const std::pair<std::string_view, const Duration&> durations[] = {
      {"interval", health.interval()},
      {"timeout", health.timeout()},
      {"start_period", health.start_period()},
      {"start_interval", health.start_interval()}};
  for (const auto& [name, duration] : durations) {
    AGBOX_TRY_VOID(check_probe_duration(whose + " healthcheck." + std::string(name), duration));
  }
  return {};
}

bool has_probe(const v1::CompanionContainerSpec& companion) {
  return companion.has_healthcheck() &&
         !(companion.healthcheck().test_size() == 1 && companion.healthcheck().test(0) == "NONE");
}

Result<> check_hooks(const CompanionField& field, const v1::CompanionContainerSpec& companion) {
  if (companion.post_start_on_primary().empty()) return {};
  if (field.name == "optional_services") {
    return invalid_argument(title(companion) +
                            ": an optional service must not have post_start_on_primary; make it "
                            "one of required_services or companion_containers");
  }
  // Hooks run once it is healthy.
  if (!has_probe(companion)) {
    return invalid_argument(title(companion) +
                            " with post_start_on_primary must define healthcheck");
  }
  AGBOX_TRY_VOID(at_most(static_cast<std::size_t>(companion.post_start_on_primary_size()),
                         maxima::kHooks, "the number of entries of post_start_on_primary"));
  return check_tokens(entry_name(field, companion) + ".post_start_on_primary",
                      companion.post_start_on_primary());
}

// The order of these checks, but not that of the last four, is known to clients.
Result<> check_companion(const CompanionField& field, const v1::CompanionContainerSpec& companion,
                         Names& names) {
  if (companion.name().empty()) return invalid_argument("companion container name is required");
  const std::string whose = title(companion);
  if (companion.image().empty()) return invalid_argument(whose + " image is required");
  AGBOX_TRY_VOID(check_unique(companion.name(), names));
  AGBOX_TRY_VOID(check_hooks(field, companion));
  if (companion.has_healthcheck()) {
    AGBOX_TRY_VOID(check_healthcheck(whose, companion.healthcheck()));
  }
  AGBOX_TRY_VOID(check_tokens(entry_name(field, companion) + ".command", companion.command()));
  if (!is_name(companion.name())) {
    return invalid_argument(whose + ": a name has 1 to 63 letters, digits, hyphens or underscores");
  }
  if (dns_name(companion.name()) == "localhost") {
    return invalid_argument(whose + ": every container has this name for itself; use another");
  }
  AGBOX_TRY_VOID(at_most(companion.image().size(), maxima::kImageBytes,
                         "the size of a companion container's image"));
  if (const auto image = parse_image_reference(companion.image()); !image) {
    return std::unexpected(image.error().within(whose));
  }
  return check_environment(entry_name(field, companion) + ".envs", companion.envs());
}

}  // namespace

Result<> check_companions(const v1::CreateSpec& spec) {
  Names names;
  int count = 0;
  for (const CompanionField& field : companion_fields(spec)) count += field.companions.size();
  if (count > kMaxCompanions) {
    return invalid_argument("companion_containers and services: at most " +
                            std::to_string(kMaxCompanions) + " are possible together, got " +
                            std::to_string(count));
  }
  for (const CompanionField& field : companion_fields(spec)) {
    for (const auto& companion : field.companions) {
      AGBOX_TRY_VOID(check_companion(field, companion, names));
    }
  }
  return {};
}

Result<> check_companion_limits(const v1::CreateSpec& spec) {
  for (const CompanionField& field : companion_fields(spec)) {
    for (const auto& companion : field.companions) {
      const std::string entry = entry_name(field, companion) + ".";
      AGBOX_TRY_VOID(check_cpu_limit(entry + "cpu_limit", companion.cpu_limit()));
      AGBOX_TRY_VOID(check_memory_limit(entry + "memory_limit", companion.memory_limit()));
      AGBOX_TRY_VOID(check_disk_limit(entry + "disk_limit", companion.disk_limit()));
    }
  }
  return {};
}

Result<> check_companion_cpus(const v1::CreateSpec& spec, std::int64_t cpus) {
  for (const CompanionField& field : companion_fields(spec)) {
    for (const auto& companion : field.companions) {
      const std::string name = entry_name(field, companion) + ".cpu_limit";
      AGBOX_TRY_VOID(check_engine_cpus(name, companion.cpu_limit(), cpus));
    }
  }
  return {};
}

}  // namespace agbox
