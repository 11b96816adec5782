// SPDX-License-Identifier: Apache-2.0
#include "support/fake_docker/fake_json.h"

namespace agbox::fake {

Reply refuse(int status, std::string_view message) {
  return ok(json::object{{"message", message}}, status);
}

json::object parse_filters(const Request& request) {
  return parse_body(query(request, "filters"));
}

std::vector<std::string> filter_values(const json::object& filters, std::string_view key) {
  std::vector<std::string> values;
  const json::value* filter = filters.if_contains(key);
  if (filter == nullptr) return values;
  if (filter->is_array()) {
    for (const json::value& value : filter->as_array()) values.emplace_back(value.as_string());
  } else if (filter->is_object()) {
    for (const auto& field : filter->as_object()) values.emplace_back(field.key());
  }
  return values;
}

bool matches_label_filter(const std::map<std::string, std::string>& labels,
                          const json::object& filters) {
  return std::ranges::all_of(filter_values(filters, "label"), [&](const std::string& wanted) {
    const std::size_t equals = wanted.find('=');
    const auto found = labels.find(wanted.substr(0, equals));
    if (found == labels.end()) return false;
    return equals == std::string::npos || found->second == wanted.substr(equals + 1);
  });
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  pattern.remove_prefix(star + 1);
  for (text.remove_prefix(star);; text.remove_prefix(1)) {
    if (matches_glob(pattern, text)) return true;
    if (text.empty()) return false;
  }
}

std::string Engine::new_id() {
  // Random-looking, because clients must not rely on any order; the same in every run.
  std::string text;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t x = ++ids_ * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    std::array<char, 17> hex{};
    std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(x ^ x >> 31));
    text += hex.data();
  }
  return text;
}

Image* Engine::find_image(std::string_view reference) {
  const std::string name = canonical(reference);
  for (auto& [image_id, image] : images) {
    if (image_id == reference || std::ranges::find(image.names, name) != image.names.end()) {
      return &image;
    }
  }
  return nullptr;
}

Image& Engine::add_image(std::string_view reference, json::object config) {
  Image image{
      .id = "sha256:" + new_id(), .names = {canonical(reference)}, .config = std::move(config)};
  return images[image.id] = std::move(image);
}

std::string Engine::named(const Request& request) {
  for (const std::string_view directory : {"/containers/", "/networks/", "/exec/"}) {
    if (!request.path.starts_with(directory)) continue;
    const std::string rest = request.path.substr(directory.size());
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    const std::string object = rest.substr(0, slash);
    std::string name = object;
    if (directory == "/containers/") {
      if (const Container* container = find_container(object)) name = container->name;
    } else if (directory == "/exec/") {
      const auto exec = execs.find(object);
      const Container* const container =
          exec == execs.end() ? nullptr : find_container(exec->second.container_id);
      if (container != nullptr) name = container->name;
    } else if (const Network* network = find_network(object)) {
      name = network->name;
    }
    return request.method + " " + std::string(directory) + name + rest.substr(slash);
  }
  return request.method + " " + request.path;
}

Reply Engine::answer(const Request& request) {
  const std::string call = request.method + " " + request.path;
  if (call == "GET /_ping") return {.body = "OK", .content_type = "text/plain; charset=utf-8"};
  if (call == "GET /version") return version_reply();
  if (call == "GET /info") return info_reply();
  if (call == "POST /containers/create") return create_container(request);
  if (call == "GET /containers/json") return list_containers(request);
  if (call == "POST /networks/create") return create_network(request);
  if (call == "GET /networks") return list_networks(request);

  // What is left of the path between a prefix and a suffix, or nothing.
  const auto between = [&](std::string_view prefix,
                           std::string_view suffix) -> std::optional<std::string> {
    std::string_view rest = call;
    if (!rest.starts_with(prefix) || !rest.ends_with(suffix)) return std::nullopt;
    if (rest.size() <= prefix.size() + suffix.size()) return std::nullopt;
    return std::string(rest.substr(prefix.size(), rest.size() - prefix.size() - suffix.size()));
  };
  if (const auto reference = between("GET /images/", "/json")) return inspect_image(*reference);
  if (const auto exec = between("GET /exec/", "/json")) return inspect_exec(*exec);
  if (const auto network = between("POST /networks/", "/disconnect")) {
    return disconnect(request, *network);
  }
  for (const std::string_view method : {"GET ", "DELETE "}) {
    if (const auto id_or_name = between(std::string(method) + "/networks/", "")) {
      Network* network = find_network(*id_or_name);
      if (network == nullptr) return refuse(404, "network " + *id_or_name + " not found");
      return method == "GET " ? ok(show(*network)) : remove_network(*network);
    }
  }
  if (request.path.starts_with("/containers/")) {
    const std::string rest = request.path.substr(12);
    const std::size_t slash = std::min(rest.find('/'), rest.size());
    return answer_container(request, rest.substr(0, slash), rest.substr(slash));
  }
  return refuse(404, "page not found");
}

Reply Engine::inspect_image(const std::string& reference) {
  const Image* image = find_image(reference);
  if (image == nullptr) {
    return refuse(404, "no such image: " + reference + ": No such image: " + familiar(reference));
  }
  json::array tags;
  for (const std::string& name : image->names) tags.emplace_back(familiar(name));
  return ok(json::object{{"Id", image->id},
                         {"RepoTags", std::move(tags)},
                         {"RepoDigests", json::array()},
                         {"Os", "linux"},
                         {"Architecture", "amd64"},
                         {"Size", 1234567},
                         {"Config", image->config}});
}

Reply Engine::version_reply() const {
  return ok(json::object{
      {"Version", version},
      {"ApiVersion", newest_api},
      {"MinAPIVersion", oldest_api},
      {"Os", "linux"},
      {"Components", json::array{json::object{{"Name", "Engine"}, {"Version", version}}}}});
}

Reply Engine::info_reply() const {
  json::object info{{"ID", id},
                    {"Name", "fake"},
                    {"ServerVersion", version},
                    {"OSType", "linux"},
                    {"Architecture", "x86_64"},
                    {"KernelVersion", "6.1.0"},
                    {"Driver", "overlay2"},
                    {"DockerRootDir", "/var/lib/docker"},
                    {"CgroupDriver", "systemd"},
                    {"CgroupVersion", "2"},
                    {"DefaultRuntime", "runc"},
                    {"NCPU", 4},
                    {"MemTotal", std::int64_t{8} << 30},
                    {"LiveRestoreEnabled", false},
                    {"SecurityOptions", json::array{"name=seccomp,profile=default"}},
                    {"Warnings", nullptr}};
  for (const auto& field : info_overrides) info[field.key()] = field.value();
  return ok(info);
}

void Engine::emit(std::string_view type, std::string_view action, const std::string& object_id,
                  const std::map<std::string, std::string>& attributes) {
  if (!on_event) return;
  on_event({{"Type", type},
            {"Action", action},
            {"Actor", json::object{{"ID", object_id}, {"Attributes", fake::show(attributes)}}},
            {"timeNano", now_nanoseconds()}});
}

void Engine::emit(std::string_view action, const Container& container,
                  std::map<std::string, std::string> more) {
  more.insert(container.labels.begin(), container.labels.end());
  more["name"] = container.name;
  more["image"] = text_at(container.spec, "Image");
  emit("container", action, container.id, more);
}

}  // namespace agbox::fake
