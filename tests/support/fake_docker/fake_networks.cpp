// SPDX-License-Identifier: Apache-2.0
#include "support/fake_docker/fake_json.h"

namespace agbox::fake {

Network* Engine::find_network(std::string_view id_or_name) {
  if (const auto found = networks.find(std::string(id_or_name)); found != networks.end()) {
    return &found->second;
  }
  for (auto& [network_id, network] : networks) {
    if (network.name == id_or_name) return &network;
  }
  const auto first = networks.lower_bound(std::string(id_or_name));
  if (first == networks.end() || !first->first.starts_with(id_or_name)) return nullptr;
  return &first->second;
}

Reply Engine::create_network(const Request& request) {
  Network network;
  network.spec = parse_body(request.body);
  network.name = text_at(network.spec, "Name");
  network.labels = labels_of(network.spec);
  network.bridge_name =
      text_at(object_at(network.spec, "Options"), "com.docker.network.bridge.name");
  const json::array pools = array_at(object_at(network.spec, "IPAM"), "Config");
  if (!pools.empty()) network.subnet = text_at(pools[0].as_object(), "Subnet");
  network.id = new_id();
  for (const auto& [other_id, other] : networks) {
    if (other.name == network.name) {
      return refuse(409, "network with name " + network.name + " already exists");
    }
    if (!network.subnet.empty() && other.subnet == network.subnet) {
      return refuse(403, "Pool overlaps with other one on this address space");
    }
    if (!network.bridge_name.empty() && other.bridge_name == network.bridge_name) {
      return refuse(403, "cannot create network " + network.id + " (" + network.bridge_name +
                             "): conflicts with network " + other_id + " (" + other.bridge_name +
                             "): networks have same bridge name");
    }
  }
  const std::string made = network.id;
  emit("network", "create", made, {{"name", network.name}, {"type", "bridge"}});
  networks[made] = std::move(network);
  return ok(json::object{{"Id", made}, {"Warning", ""}}, 201);
}

Reply Engine::disconnect(const Request& request, const std::string& network_name) {
  Network* network = find_network(network_name);
  if (network == nullptr) return refuse(404, "network " + network_name + " not found");
  const json::object body = parse_body(request.body);
  const std::string member = text_at(body, "Container");
  Container* container = find_container(member);
  if (container == nullptr && flag_at(body, "Force") &&
      network->stale_endpoints.erase(member) > 0) {
    return {};
  }
  if (container == nullptr) return refuse(404, "No such container: " + member);
  if (container->network != network->name && container->network != network->id) {
    return refuse(500,
                  "container " + container->id + " is not connected to network " + network->name);
  }
  container->network.clear();
  container->ipv4_address.clear();
  return {};
}

Reply Engine::remove_network(Network& network) {
  if (!network.stale_endpoints.empty()) {
    return refuse(403, "error while removing network: network " + network.name +
                           " has active endpoints (name:\"" + *network.stale_endpoints.begin() +
                           "\")");
  }
  for (const auto& [container_id, container] : containers) {
    const bool is_member = container.network == network.name || container.network == network.id;
    if (is_member && container.is_running()) {
      return refuse(403, "error while removing network: network " + network.name + " id " +
                             network.id + " has active endpoints");
    }
  }
  emit("network", "destroy", network.id, {{"name", network.name}, {"type", "bridge"}});
  const std::string removed = network.id;
  networks.erase(removed);
  return {.status = 204};
}

json::object Engine::show(const Network& network) const {
  json::object members;
  for (const auto& [container_id, container] : containers) {
    const bool is_member = container.network == network.name || container.network == network.id;
    if (!is_member || !container.is_running()) continue;
    members[container_id] =
        json::object{{"Name", container.name}, {"IPv4Address", container.ipv4_address}};
  }
  for (const std::string& name : network.stale_endpoints) {
    members["ep-" + name] = json::object{{"Name", name}};
  }
  json::array pools;
  if (!network.subnet.empty()) {
    // Like Docker 20.10, which does not report a gateway that it chose itself.
    const json::array asked = array_at(object_at(network.spec, "IPAM"), "Config");
    json::object pool{{"Subnet", network.subnet}};
    const std::string gateway = text_at(asked[0].as_object(), "Gateway");
    if (!gateway.empty()) pool["Gateway"] = gateway;
    pools.push_back(std::move(pool));
  }
  return {{"Id", network.id},
          {"Name", network.name},
          {"Driver", "bridge"},
          {"EnableIPv6", false},
          {"Internal", false},
          {"IPAM", json::object{{"Driver", "default"}, {"Config", std::move(pools)}}},
          {"Options", object_at(network.spec, "Options")},
          {"Labels", fake::show(network.labels)},
          {"Containers", std::move(members)}};
}

Reply Engine::list_networks(const Request& request) const {
  const json::object filters = parse_filters(request);
  json::array rows;
  for (const auto& [network_id, network] : networks) {
    if (matches_label_filter(network.labels, filters)) rows.push_back(show(network));
  }
  return ok(rows);
}

}  // namespace agbox::fake
