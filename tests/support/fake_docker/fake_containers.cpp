// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/base64.h"
#include "support/fake_docker/fake_json.h"

namespace agbox::fake {

Container* Engine::find_container(std::string_view id_or_name) {
  if (id_or_name.starts_with('/')) id_or_name.remove_prefix(1);
  if (const auto named = container_ids_.find(id_or_name); named != container_ids_.end()) {
    return &containers.at(named->second);
  }
  // Ids may be cut short, as long as only one begins like that.
  const auto first = containers.lower_bound(std::string(id_or_name));
  if (first == containers.end() || !first->first.starts_with(id_or_name)) return nullptr;
  const auto second = std::next(first);
  if (first->first != id_or_name && second != containers.end() &&
      second->first.starts_with(id_or_name)) {
    return nullptr;
  }
  return &first->second;
}

Reply Engine::answer_container(const Request& request, const std::string& object,
                               std::string_view action) {
  Container* container = find_container(object);
  if (container == nullptr) return refuse(404, "No such container: " + object);
  const std::string call = request.method + " " + std::string(action);
  if (call == "GET /json") return inspect(*container);
  if (call == "POST /start") return start(*container);
  if (call == "HEAD /archive") return stat_path(*container, query(request, "path"));
  if (call == "DELETE ") return remove(*container, request);
  if (call == "POST /stop") {
    container->stop_timeout = query(request, "t");
    if (!container->is_running()) return {.status = 304};
    end_container(*container, exit_code_of_stop);
    emit("stop", *container);
    return {.status = 204};
  }
  if (call == "POST /kill") {
    if (!container->is_running()) {
      return refuse(409, "Cannot kill container: " + object + ": Container " + container->id +
                             " is not running");
    }
    emit("kill", *container, {{"signal", "9"}});
    end_container(*container, 137);
    return {.status = 204};
  }
  if (call == "POST /exec") return create_exec(*container, request);
  if (call == "GET /stats") return stats(*container);
  if (call == "GET /logs") return logs(*container, request);
  if (call == "POST /pause") return pause(*container, true);
  if (call == "POST /unpause") return pause(*container, false);
  return refuse(404, "page not found");
}

Reply Engine::create_container(const Request& request) {
  const json::object spec = parse_body(request.body);
  std::string name = query(request, "name");
  const std::string reference = text_at(spec, "Image");
  const Image* image = find_image(reference);
  if (image == nullptr) return refuse(404, "No such image: " + familiar(reference));
  if (const auto taken = container_ids_.find(name); taken != container_ids_.end()) {
    return refuse(409, "Conflict. The container name \"/" + name +
                           "\" is already in use by container \"" + taken->second +
                           "\". You have to remove (or rename) that container to be able to reuse "
                           "that name.");
  }
  const json::object host = object_at(spec, "HostConfig");
  for (const json::value& mount : array_at(host, "Mounts")) {
    const std::string source = text_at(mount.as_object(), "Source");
    if (source.starts_with("/nonexistent")) {
      return refuse(
          400,
          "invalid mount config for type \"bind\": bind source path does not exist: " + source);
    }
  }
  Container container;
  container.id = new_id();
  container.name = name.empty() ? "fake_" + container.id.substr(0, 8) : name;
  container.spec = spec;
  if (!spec.contains("Healthcheck") && image->config.contains("Healthcheck")) {
    container.spec["Healthcheck"] = image->config.at("Healthcheck");
  }
  container.labels = labels_of(image->config);
  for (auto& [key, value] : labels_of(spec)) container.labels[key] = value;
  container.image_id = image->id;
  container.files = image->files;
  container.created_at = now_text();
  container.network = text_at(host, "NetworkMode");
  const std::string made_id = container.id;
  container_ids_[container.name] = made_id;
  const Container& made = containers[made_id] = std::move(container);
  emit("create", made);
  return ok(json::object{{"Id", made_id}, {"Warnings", json::array()}}, 201);
}

// {"80/tcp": [{"HostIp": "127.0.0.1", "HostPort": "8080"}]} as rows of a list.
json::array ports_of(const Container& container) {
  json::array rows;
  const json::object host = object_at(container.spec, "HostConfig");
  for (const auto& field : object_at(host, "PortBindings")) {
    const std::string_view inside = field.key();
    for (const json::value& binding : field.value().as_array()) {
      const json::object& asked = binding.as_object();
      rows.push_back({{"IP", text_at(asked, "HostIp")},
                      {"PrivatePort", std::stoi(std::string(inside))},
                      {"PublicPort", std::stoi(text_at(asked, "HostPort"))},
                      {"Type", inside.substr(inside.find('/') + 1)}});
    }
  }
  return rows;
}

// As Docker words it for a port of another container.
std::optional<std::string> port_conflict(const json::array& wanted, const json::array& taken) {
  for (const json::value& port : wanted) {
    for (const json::value& other : taken) {
      const json::object& left = port.as_object();
      const json::object& right = other.as_object();
      if (left.at("PublicPort") != right.at("PublicPort") || left.at("Type") != right.at("Type")) {
        continue;
      }
      return "driver failed programming external connectivity on endpoint fake: Bind for " +
             text_at(left, "IP") + ":" + json::serialize(left.at("PublicPort")) +
             " failed: port is already allocated";
    }
  }
  return std::nullopt;
}

Reply Engine::start(Container& container) {
  if (container.is_running()) return {.status = 304};
  for (const auto& [other_id, other] : containers) {
    if (!other.is_running()) continue;
    const auto conflict = port_conflict(ports_of(container), ports_of(other));
    if (conflict) return refuse(500, *conflict);
  }
  if (container.network != "none" && container.network != "default" &&
      container.network != "host" && container.network != "bridge" && !container.network.empty()) {
    Network* network = find_network(container.network);
    if (network == nullptr) return refuse(404, "network " + container.network + " not found");
    container.ipv4_address = address_in(network->subnet, network->next_host++);
  }
  container.status = "running";
  container.pid = ++pids_;
  container.exit_code = 0;
  container.was_oom_killed = false;
  container.started_at = now_text();
  container.finished_at = "0001-01-01T00:00:00Z";
  const json::object probe = object_at(container.spec, "Healthcheck");
  const json::array test = array_at(probe, "Test");
  if (!test.empty() && test[0] != "NONE") container.health = "starting";
  emit("start", container);
  if (on_start) on_start(container);
  return {.status = 204};
}

Reply Engine::pause(Container& container, bool is_paused) {
  if (is_paused && !container.is_running()) {
    return refuse(409, "Container " + container.id + " is not running");
  }
  if (is_paused && container.is_paused) {
    return refuse(409, "Container " + container.id + " is already paused");
  }
  if (!is_paused && !container.is_paused) {
    return refuse(500, "Container " + container.id + " is not paused");
  }
  container.is_paused = is_paused;
  emit(is_paused ? "pause" : "unpause", container);
  return {.status = 204};
}

void Engine::end_container(Container& container, int exit_code, bool oom_killed) {
  if (!container.is_running()) return;
  container.status = "exited";
  container.is_paused = false;
  container.exit_code = exit_code;
  container.was_oom_killed = oom_killed;
  container.pid = 0;
  container.finished_at = now_text();
  container.ipv4_address.clear();
  ++container.exits;
  std::erase_if(execs, [&container](const auto& each) {
    return each.second.container_id == container.id && !each.second.has_run;
  });
  if (oom_killed) emit("oom", container);
  emit("die", container, {{"exitCode", std::to_string(exit_code)}});
  if (on_change) on_change();
}

void Engine::cut_off(Container& container) {
  container.ipv4_address.clear();
  emit("die", container, {{"exitCode", "137"}});
  emit("start", container);
}

void Engine::set_health(Container& container, std::string_view health, std::string_view output) {
  container.health = health;
  container.probe_output = output;
  emit("health_status: " + std::string(health), container);
}

Reply Engine::remove(Container& container, const Request& request) {
  if (container.is_running() && !has_flag(request, "force")) {
    return refuse(409, "You cannot remove a running container " + container.id +
                           ". Stop the container before attempting removal or force remove");
  }
  end_container(container, 137);
  emit("destroy", container);
  container_ids_.erase(container.name);
  const std::string removed = container.id;
  containers.erase(removed);
  if (on_change) on_change();
  return {.status = 204};
}

Reply Engine::stat_path(const Container& container, const std::string& path) {
  const auto found = container.files.find(path);
  if (found == container.files.end()) {
    return refuse(404, "Could not find the file " + path + " in container " + container.id);
  }
  const json::object stat{{"name", path.substr(path.rfind('/') + 1)},
                          {"size", found->second.size},
                          {"mode", found->second.mode},
                          {"mtime", container.created_at},
                          {"linkTarget", found->second.link_target}};
  std::string encoded = to_url_safe_base64(json::serialize(stat));
  std::ranges::replace(encoded, '-', '+');
  std::ranges::replace(encoded, '_', '/');
  return {.headers = {{"X-Docker-Container-Path-Stat", encoded}}};
}

Reply Engine::stats(const Container& container) {
  json::object answer{{"id", container.id}, {"name", "/" + container.name}};
  if (container.is_running()) answer = container.usage;
  answer["read"] = container.is_running() ? now_text() : "0001-01-01T00:00:00Z";
  return ok(answer);
}

Reply Engine::inspect(const Container& container) const {
  json::object state{{"Status", container.is_paused ? "paused" : container.status},
                     {"Running", container.is_running()},
                     {"Paused", container.is_paused},
                     {"Restarting", container.status == "restarting"},
                     {"OOMKilled", container.was_oom_killed},
                     {"Dead", false},
                     {"Pid", container.pid},
                     {"ExitCode", container.exit_code},
                     {"Error", container.error},
                     {"StartedAt", container.started_at},
                     {"FinishedAt", container.finished_at}};
  if (!container.health.empty()) {
    json::array log;
    if (!container.probe_output.empty()) {
      log.push_back({{"ExitCode", 1}, {"Output", "of an earlier one"}});
      log.push_back({{"ExitCode", 0}, {"Output", container.probe_output}});
    }
    state["Health"] =
        json::object{{"Status", container.health}, {"FailingStreak", 0}, {"Log", std::move(log)}};
  }
  const json::object host = object_at(container.spec, "HostConfig");
  json::array mounts;
  for (const json::value& mount : array_at(host, "Mounts")) {
    const json::object& asked = mount.as_object();
    const json::value* read_only = asked.if_contains("ReadOnly");
    mounts.push_back({{"Type", text_at(asked, "Type")},
                      {"Source", text_at(asked, "Source")},
                      {"Destination", text_at(asked, "Target")},
                      {"RW", read_only == nullptr || !read_only->as_bool()}});
  }
  json::object attachments;
  if (!container.network.empty()) {
    json::object endpoint{{"IPAddress", container.ipv4_address}, {"NetworkID", ""}};
    const json::object asked =
        object_at(object_at(object_at(container.spec, "NetworkingConfig"), "EndpointsConfig"),
                  container.network);
    endpoint["Aliases"] = array_at(asked, "Aliases");
    for (const auto& [network_id, network] : networks) {
      if (network.name == container.network || network_id == container.network) {
        endpoint["NetworkID"] = network_id;
        endpoint["Gateway"] = address_in(network.subnet, 1);
      }
    }
    attachments[container.network] = std::move(endpoint);
  }
  json::object config = container.spec;
  config.erase("HostConfig");
  config.erase("NetworkingConfig");
  config["Labels"] = fake::show(container.labels);
  return ok(json::object{{"Id", container.id},
                         {"Name", "/" + container.name},
                         {"Created", container.created_at},
                         {"Image", container.image_id},
                         {"State", std::move(state)},
                         {"Config", std::move(config)},
                         {"HostConfig", host},
                         {"Mounts", std::move(mounts)},
                         {"NetworkSettings", json::object{{"Networks", std::move(attachments)}}}});
}

Reply Engine::list_containers(const Request& request) const {
  const json::object filters = parse_filters(request);
  const bool all = has_flag(request, "all");
  json::array rows;
  for (const auto& [container_id, container] : containers) {
    if (!all && !container.is_running()) continue;
    if (!matches_label_filter(container.labels, filters)) continue;
    rows.push_back({{"Id", container_id},
                    {"Names", json::array{"/" + container.name}},
                    {"Image", text_at(container.spec, "Image")},
                    {"ImageID", container.image_id},
                    {"State", container.is_paused ? "paused" : container.status},
                    {"Labels", fake::show(container.labels)},
                    {"Ports", container.is_running() ? ports_of(container) : json::array()}});
  }
  return ok(rows);
}

}  // namespace agbox::fake
