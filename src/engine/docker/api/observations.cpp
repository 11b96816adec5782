// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/observations.h"

#include "engine/docker/api/json_reader.h"

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
    seen.container_ids.push_back(id);
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
    return seen;
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
