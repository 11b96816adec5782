// SPDX-License-Identifier: Apache-2.0
// The table of keys, the only place that names them.
#include <array>

#include "daemon/configuration.h"
#include "model/duration.h"
#include "model/network/resolv_conf.h"
#include "model/network/sandbox_subnet.h"
#include "model/sandbox/time_to_live.h"
#include "model/spec/limits.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using Values = std::span<const std::string>;
using Kind = ConfigurationKey::Kind;

constexpr std::string_view kDefaultTemplate = "{sandbox_id}/{exec_id}";
constexpr unsigned kWidestPoolPrefixLength = 8;

std::unexpected<Error> invalid(std::string message) {
  return fail(reason::kInvalidArgument, std::move(message));
}

template <std::chrono::nanoseconds Configuration::* Member>
Result<> assign_duration(Values values, Configuration& into) {
  AGBOX_TRY(duration, parse_duration(values[0]));
  if (duration < std::chrono::nanoseconds::zero()) {
    return invalid("duration " + json_quote(values[0]) +
                   " is negative; write 0 to switch it off, or a time such as 30m");
  }
  if (duration > kLongestTtl) {
    return invalid("duration " + json_quote(values[0]) + " is longer than " +
                   std::to_string(kLongestTtl.count()) + "h; write 0 to switch it off");
  }
  into.*Member = duration;
  return {};
}

template <fs::path Configuration::* Member>
Result<> assign_absolute_path(Values values, Configuration& into) {
  if (values[0].find('\0') != std::string::npos) {
    return invalid("path " + json_quote(values[0]) + " has a NUL byte");
  }
  const fs::path path(values[0]);
  if (path.is_relative()) {
    return invalid("path " + json_quote(values[0]) +
                   " is not absolute; write it from / (~ is not expanded)");
  }
  into.*Member = path.lexically_normal();
  return {};
}

// The template without its fields, or an error for a stray brace.
Result<std::string> without_fields(std::string_view text) {
  std::string rest;
  while (!text.empty()) {
    if (text.starts_with("{sandbox_id}") || text.starts_with("{exec_id}")) {
      text.remove_prefix(text.find('}') + 1);
      rest += '_';
    } else if (text[0] == '{' || text[0] == '}') {
      return invalid("has a brace that is not part of {sandbox_id} or {exec_id}");
    } else {
      rest += text[0];
      text.remove_prefix(1);
    }
  }
  return rest;
}

Result<> check_template(std::string_view text) {
  // A sandbox must see only its own log directory, so that directory comes first.
  if (!text.starts_with("{sandbox_id}/")) return invalid("does not begin with {sandbox_id}/");
  if (text.find("{exec_id}") == std::string_view::npos) {
    return invalid("has no {exec_id}, so two execs would share their files");
  }
  AGBOX_TRY(rest, without_fields(text));
  for (const char c : rest) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      return invalid("has a control character");
  }
  rest += '/';
  for (std::size_t begin = 0; begin < rest.size();) {
    const std::size_t end = rest.find('/', begin);
    const std::string component = rest.substr(begin, end - begin);
    if (component.empty()) return invalid("has an empty path component");
    if (component == "." || component == "..") return invalid("has a component " + component);
    begin = end + 1;
  }
  return {};
}

Result<> assign_log_level(Values values, Configuration& into) {
  const auto level = parse_log_level(values[0]);
  if (!level) return invalid("expected debug, info, warn or error");
  into.log_level = *level;
  return {};
}

Result<> assign_exec_output_template(Values values, Configuration& into) {
  if (const auto checked = check_template(values[0]); !checked) {
    return invalid("template " + json_quote(values[0]) + " " + checked.error().message() +
                   "; write for example " + std::string(kDefaultTemplate));
  }
  into.exec_output_template = values[0];
  return {};
}

Result<> assign_exec_output_max(Values values, Configuration& into) {
  into.exec_output_max = 0;
  if (values[0] == "0") return {};
  AGBOX_TRY(limit, ByteLimit::parse(values[0]));
  into.exec_output_max = static_cast<std::uint64_t>(limit.bytes());
  return {};
}

Result<> assign_address_pool(Values values, Configuration& into) {
  AGBOX_TRY(pool, parse_ipv4_network(values[0]));
  if (pool.prefix_length > kSandboxPrefixLength || pool.prefix_length < kWidestPoolPrefixLength) {
    return invalid("network " + pool.text() + " must be between /" +
                   std::to_string(kWidestPoolPrefixLength) + " and /" +
                   std::to_string(kSandboxPrefixLength) + ", because each sandbox takes a /" +
                   std::to_string(kSandboxPrefixLength) + " of it");
  }
  into.address_pool = pool;
  return {};
}

Result<> assign_dns(Values values, Configuration& into) {
  std::vector<Ipv4Address> resolvers;
  for (const std::string& value : values) {
    AGBOX_TRY(address, parse_ipv4_address(value));
    if (!can_be_given(address)) {
      return invalid("resolver " + address.text() + " is " +
                     (address.is_loopback() ? "a loopback address" : "the unspecified address") +
                     ", which inside a sandbox is the sandbox itself; use a resolver that the "
                     "network can reach");
    }
    resolvers.push_back(address);
  }
  into.dns = std::move(resolvers);
  return {};
}

Result<> assign_on_failure(Values values, Configuration& into) {
  if (values[0] != "pause" && values[0] != "report") {
    return invalid("value " + json_quote(values[0]) + " is neither pause nor report");
  }
  into.pauses_unisolated = values[0] == "pause";
  return {};
}

constexpr std::array<ConfigurationKey, 11> kKeys = {{
    {.table = "runtime",
     .name = "idle_ttl",
     .written_as = "duration",
     .example = R"("45m")",
     .default_value = "30m",
     .meaning =
         "Stop a sandbox after this long without an exec; `0` disables it. `idle_ttl` of a request "
         "takes precedence.",
     .assign = assign_duration<&Configuration::idle_ttl>},
    {.table = "runtime",
     .name = "cleanup_ttl",
     .written_as = "duration",
     .example = R"("720h")",
     .default_value = "360h",
     .meaning = "Delete a sandbox that has been stopped or failed for this long; `0` disables it.",
     .assign = assign_duration<&Configuration::cleanup_ttl>},
    {.table = "runtime",
     .name = "event_retention_ttl",
     .written_as = "duration",
     .example = R"("24h")",
     .default_value = "168h",
     .computed_default = "`168h`, or `runtime.cleanup_ttl` if only that is set",
     .meaning = "How long the history of a deleted sandbox is kept; `0` keeps it forever.",
     .assign = assign_duration<&Configuration::event_retention_ttl>},
    {.table = "runtime",
     .name = "state_root",
     .written_as = "absolute path",
     .example = R"("/srv/agbox/state")",
     .computed_default = "`$XDG_DATA_HOME/agents-sandbox/state`",
     .meaning = "Directory of guest programs and guest sockets.",
     .assign = assign_absolute_path<&Configuration::state_root>},
    {.table = "runtime",
     .name = "log_level",
     .written_as = "`debug`, `info`, `warn` or `error`",
     .example = R"("debug")",
     .default_value = "info",
     .meaning = "Minimum level of log messages, case-insensitive.",
     .assign = assign_log_level},
    {.table = "artifacts",
     .name = "exec_output_root",
     .written_as = "absolute path",
     .example = R"("/srv/agbox/exec-logs")",
     .computed_default = "`$XDG_DATA_HOME/agents-sandbox/exec-logs`",
     .meaning = "Directory of the output files of execs.",
     .assign = assign_absolute_path<&Configuration::exec_output_root>},
    {.table = "artifacts",
     .name = "exec_output_template",
     .written_as = "template",
     .example = R"("{sandbox_id}/logs/{exec_id}")",
     .default_value = kDefaultTemplate,
     .meaning = "Path of the output files of an exec in `artifacts.exec_output_root`, without "
                "`.stdout.log` and `.stderr.log`. Must begin with `{sandbox_id}/` and contain "
                "`{exec_id}`.",
     .assign = assign_exec_output_template},
    {.table = "artifacts",
     .name = "exec_output_max",
     .written_as = "size",
     .example = R"("512MiB")",
     .default_value = "4GiB",
     .meaning = "Maximum output of one exec, stdout and stderr together; the rest is dropped. `0` "
                "means no limit.",
     .assign = assign_exec_output_max},
    {.table = "network",
     .name = "address_pool",
     .written_as = "IPv4 network, `/8` to `/28`",
     .example = R"("10.77.0.0/16")",
     .default_value = "10.201.0.0/16",
     .meaning = "Pool of sandbox networks: each sandbox gets a /28 that overlaps no route and no "
                "network of the engine.",
     .assign = assign_address_pool},
    {.table = "network",
     .name = "dns",
     .kind = Kind::StringList,
     .written_as = "list of IPv4 addresses",
     .example = R"(["192.0.2.53", "1.1.1.1"])",
     .computed_default = "the host's current resolvers outside loopback",
     .meaning =
         "DNS resolvers of all containers; the only private addresses that a sandbox can reach, on "
         "port 53.",
     .assign = assign_dns},
    {.table = "isolation",
     .name = "on_failure",
     .written_as = "`pause` or `report`",
     .example = R"("report")",
     .default_value = "pause",
     .meaning = "What happens to a running sandbox whose isolation fails a later verification: "
                "`pause` its containers until it holds again, or only `report` it.",
     .assign = assign_on_failure},
}};

}  // namespace

std::span<const ConfigurationKey> configuration_keys() {
  return kKeys;
}

}  // namespace agbox
