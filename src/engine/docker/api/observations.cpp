// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/observations.h"

#include "engine/docker/api/base64.h"
#include "engine/docker/api/json_reader.h"
#include "engine/docker/api/output_tail.h"

namespace agbox {
namespace {

// Parses, reads with `read`, and reports unreadable fields as Garbled.
template <class Read>
auto read_with(std::string_view body, Read read)
    -> EngineResult<decltype(read(std::declval<const JsonReader&>()))> {
  AGBOX_TRY(document, parse_json(body));
  std::string problem;
  auto value = read(JsonReader(document, problem));
  if (!problem.empty()) return engine_fail(EngineErrorKind::Garbled, problem);
  return value;
}

std::string without_slash(std::string name) {
  if (name.starts_with('/')) name.erase(0, 1);
  return name;
}

// The bits of Go's os.FileMode, which are not those of stat(2).
FileSeen::Type type_of(std::uint64_t mode) {
  constexpr std::uint64_t kDirectory = 1U << 31U;
  constexpr std::uint64_t kLink = 1U << 27U;
  constexpr std::uint64_t kDevice = 1U << 26U;
  constexpr std::uint64_t kFifo = 1U << 25U;
  constexpr std::uint64_t kSocket = 1U << 24U;
  constexpr std::uint64_t kCharacterDevice = 1U << 21U;
  constexpr std::uint64_t kOther = 1U << 19U;
  switch (mode & (kDirectory | kLink | kDevice | kFifo | kSocket | kCharacterDevice | kOther)) {
    case 0:
      return FileSeen::Type::File;
    case kDirectory:
      return FileSeen::Type::Directory;
    case kLink:
      return FileSeen::Type::Link;
    case kFifo:
      return FileSeen::Type::Fifo;
    case kSocket:
      return FileSeen::Type::Socket;
    case kDevice:
    case kDevice | kCharacterDevice:
      return FileSeen::Type::Device;
    default:
      return FileSeen::Type::Other;
  }
}

NetworkSeen network_of(const JsonReader& network) {
  NetworkSeen seen;
  seen.id = network["Id"].required_text();
  seen.name = network["Name"].text();
  const auto options = network["Options"].text_map();
  if (const auto found = options.find("com.docker.network.bridge.name"); found != options.end()) {
    seen.bridge_name = found->second;
  }
  for (const JsonReader& pool : network["IPAM"]["Config"].items()) {
    seen.subnets.push_back(pool["Subnet"].text());
  }
  seen.labels = network["Labels"].text_map();
  for (const auto& [id, container] : network["Containers"].fields()) {
    seen.members.emplace(id, container["Name"].text());
  }
  return seen;
}

}  // namespace

EngineResult<ContainerSeen> read_container(std::string_view body) {
  return read_with(body, [](const JsonReader& container) {
    ContainerSeen seen;
    seen.id = container["Id"].required_text();
    seen.name = without_slash(container["Name"].text());
    seen.labels = container["Config"]["Labels"].text_map();
    const JsonReader state = container["State"];
    seen.status = state["Status"].required_text();
    seen.is_running = state["Running"].flag();
    seen.is_paused = state["Paused"].flag();
    seen.is_restarting = state["Restarting"].flag();
    seen.is_dead = state["Dead"].flag();
    seen.was_oom_killed = state["OOMKilled"].flag();
    seen.exit_code = state["ExitCode"].number();
    seen.started_at = state["StartedAt"].time();
    for (const auto& [name, endpoint] : container["NetworkSettings"]["Networks"].fields()) {
      seen.networks[name] = endpoint["IPAddress"].text();
    }
    for (const JsonReader& mount : container["Mounts"].items()) {
      seen.mount_targets.push_back(mount["Destination"].text());
    }
    seen.health = state["Health"]["Status"].text();
    const auto probes = state["Health"]["Log"].items();
    if (!probes.empty()) seen.probe_output = shown_output(probes.back()["Output"].text());
    const JsonReader config = container["Config"];
    seen.health_test = config["Healthcheck"]["Test"].texts();
    seen.shell = config["Shell"].texts();
    seen.user = config["User"].text();
    return seen;
  });
}

EngineResult<FileSeen> read_path_stat(std::string_view header) {
  const auto text = from_base64(std::string(header));
  if (!text) return engine_fail(EngineErrorKind::Garbled, "the description of a file is no base64");
  return read_with(*text, [](const JsonReader& stat) {
    stat["name"].required_text();
    return FileSeen{.type = type_of(static_cast<std::uint64_t>(stat["mode"].number())),
                    .bytes = stat["size"].number(),
                    .link_target = stat["linkTarget"].text()};
  });
}

EngineResult<std::vector<ContainerListed>> read_container_list(std::string_view body) {
  return read_with(body, [](const JsonReader& list) {
    std::vector<ContainerListed> all;
    for (const JsonReader& row : list.items()) {
      ContainerListed listed;
      listed.id = row["Id"].required_text();
      const auto names = row["Names"].texts();
      if (!names.empty()) listed.name = without_slash(names.front());
      listed.status = row["State"].text();
      listed.labels = row["Labels"].text_map();
      for (const JsonReader& port : row["Ports"].items()) {
        listed.ports.push_back({.host_address = port["IP"].text(),
                                .host_port = port["PublicPort"].number(),
                                .protocol = port["Type"].text()});
      }
      all.push_back(std::move(listed));
    }
    return all;
  });
}

EngineResult<NetworkSeen> read_network(std::string_view body) {
  return read_with(body, network_of);
}

EngineResult<std::vector<NetworkSeen>> read_network_list(std::string_view body) {
  return read_with(body, [](const JsonReader& list) {
    std::vector<NetworkSeen> all;
    for (const JsonReader& network : list.items()) all.push_back(network_of(network));
    return all;
  });
}

EngineResult<ImageSeen> read_image(std::string_view body) {
  return read_with(body, [](const JsonReader& image) {
    ImageSeen seen;
    seen.id = image["Id"].required_text();
    const JsonReader config = image["Config"];
    seen.user = config["User"].text();
    seen.entrypoint = config["Entrypoint"].texts();
    for (const auto& [target, nothing] : config["Volumes"].fields()) seen.volumes.push_back(target);
    return seen;
  });
}

EngineResult<ExecSeen> read_exec(std::string_view body) {
  return read_with(body, [](const JsonReader& exec) {
    exec["ID"].required_text();
    ExecSeen seen{.is_running = exec["Running"].flag(),
                  .exit_code = std::nullopt,
                  .pid = exec["Pid"].number()};
    if (exec.has("ExitCode")) seen.exit_code = exec["ExitCode"].number();
    return seen;
  });
}

EngineResult<ContainerUsage> read_usage(std::string_view body) {
  const auto count = [](const JsonReader& value) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(value.number(), 0));
  };
  return read_with(body, [count](const JsonReader& stats) {
    ContainerUsage usage;
    // Of a container that does not run it has no time, and nothing else.
    usage.is_running = stats["read"].time().has_value();
    if (!usage.is_running) return usage;
    const JsonReader cpu = stats["cpu_stats"]["cpu_usage"];
    usage.cpu_time = std::chrono::nanoseconds(count(cpu["total_usage"]));
    usage.user_cpu = std::chrono::nanoseconds(count(cpu["usage_in_usermode"]));
    usage.system_cpu = std::chrono::nanoseconds(count(cpu["usage_in_kernelmode"]));
    const JsonReader memory = stats["memory_stats"];
    // Of cgroup v1 and v2, in this order.
    const JsonReader details = memory["stats"];
    const bool is_v1 = details.has("total_inactive_file");
    const std::uint64_t cache = count(details[is_v1 ? "total_inactive_file" : "inactive_file"]);
    const std::uint64_t used = count(memory["usage"]);
    usage.memory_bytes = used - std::min(cache, used);
    usage.memory_limit_bytes = count(memory["limit"]);
    if (memory.has("max_usage")) usage.memory_peak_bytes = count(memory["max_usage"]);
    usage.pids = count(stats["pids_stats"]["current"]);
    for (const auto& [name, device] : stats["networks"].fields()) {
      usage.network_rx_bytes += count(device["rx_bytes"]);
      usage.network_tx_bytes += count(device["tx_bytes"]);
    }
    for (const JsonReader& entry : stats["blkio_stats"]["io_service_bytes_recursive"].items()) {
      const std::string operation = entry["op"].text();
      if (operation == "Read" || operation == "read") {
        usage.block_read_bytes += count(entry["value"]);
      } else if (operation == "Write" || operation == "write") {
        usage.block_write_bytes += count(entry["value"]);
      }
    }
    return usage;
  });
}

EngineResult<std::string> read_created_id(std::string_view body) {
  return read_with(body, [](const JsonReader& created) { return created["Id"].required_text(); });
}

EngineResult<EngineEvent> read_event(std::string_view line) {
  return read_with(line, [](const JsonReader& event) {
    EngineEvent seen;
    seen.type = event["Type"].required_text();
    seen.action = event["Action"].text();
    const JsonReader actor = event["Actor"];
    seen.object_id = actor["ID"].text();
    seen.attributes = actor["Attributes"].text_map();
    return seen;
  });
}

}  // namespace agbox
