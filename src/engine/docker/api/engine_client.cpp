// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/engine_client.h"

#include <boost/json.hpp>

#include "engine/docker/api/line_splitter.h"
#include "engine/docker/api/refusal.h"
#include "engine/docker/api/url_query.h"

namespace agbox {
namespace {

namespace json = boost::json;

// Adds the attempt to the error of an unreadable answer.
template <class T>
EngineResult<T> named(EngineResult<T> value, EngineCall call, std::string_view object) {
  if (value) return value;
  return std::unexpected(value.error().within(describe(call, object)));
}

std::string filters_of(const EventFilter& filter) {
  json::object filters;
  const auto put = [&filters](const char* key, const std::vector<std::string>& values) {
    if (!values.empty()) filters[key] = json::array(values.begin(), values.end());
  };
  std::vector<std::string> labels;
  for (const auto& [key, value] : filter.labels) {
    labels.push_back(value.empty() ? key : key + "=" + value);
  }
  put("type", filter.types);
  put("event", filter.actions);
  put("label", labels);
  return json::serialize(filters);
}

}  // namespace

template <class T>
EngineAwaitable<T> EngineClient::ask(EngineRequest request, CallOptions options,
                                     EngineResult<T> (*read)(std::string_view)) {
  AGBOX_CO_TRY(body, co_await transport_.call(request, std::move(options)));
  co_return named(read(body), request.call, request.object);
}

EngineAwaitable<> EngineClient::order(EngineRequest request, CallOptions options) {
  AGBOX_CO_TRY(body, co_await transport_.call(std::move(request), std::move(options)));
  co_return EngineResult<>{};
}

EngineAwaitable<> EngineClient::ping(CallOptions options) {
  return order({.call = EngineCall::Ping}, std::move(options));
}

EngineAwaitable<EngineIdentity> EngineClient::engine(CallOptions options) {
  return transport_.engine(std::move(options));
}

EngineAwaitable<EngineIdentity> EngineClient::identify(CallOptions options) {
  return transport_.identify(std::move(options));
}

EngineAwaitable<ImageSeen> EngineClient::inspect_image(std::string image, CallOptions options) {
  return ask({.call = EngineCall::ImageInspect, .object = std::move(image)}, std::move(options),
             read_image);
}

EngineAwaitable<> EngineClient::pull_image(ImageReference image, PullOptions pull,
                                           CallOptions options) {
  constexpr EngineCall kCall = EngineCall::ImagePull;
  const std::string name = image.canonical();
  UrlQuery query;
  query.add("fromImage", image.name()).add("tag", image.digest.empty() ? image.tag : image.digest);
  // The head of the answer comes with the first progress.
  const bool has_own_deadline = options.deadline.has_value();
  if (!has_own_deadline) options.deadline = pull.longest_silence;
  AGBOX_CO_TRY(stream, co_await transport_.open({.call = kCall,
                                                 .object = name,
                                                 .query = query.text(),
                                                 .registry_auth = pull.registry_auth},
                                                std::move(options)));
  LineSplitter lines;
  PullTracker tracker;
  while (true) {
    if (!has_own_deadline) {
      stream.set_deadline(std::chrono::steady_clock::now() + pull.longest_silence);
    }
    AGBOX_CO_TRY(piece, co_await stream.read_some());
    AGBOX_CO_TRY(whole, named(lines.feed(piece.empty() ? "\n" : piece), kCall, name));
    for (const std::string& line : whole) {
      if (EngineResult<> taken = tracker.take(line); !taken) {
        co_return std::unexpected(taken.error().within(describe(kCall, name)));
      }
      if (pull.on_progress) pull.on_progress(tracker.progress());
    }
    if (piece.empty()) co_return EngineResult<>{};
  }
}

EngineAwaitable<std::string> EngineClient::create_network(NetworkSpec spec, CallOptions options) {
  AGBOX_CO_TRY(engine, co_await transport_.engine(options));
  co_return co_await ask(
      {.call = EngineCall::NetworkCreate, .object = spec.name, .body = to_json(spec, engine.api)},
      std::move(options), read_created_id);
}

EngineAwaitable<NetworkSeen> EngineClient::inspect_network(std::string id, CallOptions options) {
  return ask({.call = EngineCall::NetworkInspect, .object = std::move(id)}, std::move(options),
             read_network);
}

EngineAwaitable<std::vector<NetworkSeen>> EngineClient::list_networks(EngineLabels labels,
                                                                      CallOptions options) {
  UrlQuery query;
  if (!labels.empty()) query.add("filters", label_filter(labels));
  return ask({.call = EngineCall::NetworkList, .query = query.text()}, std::move(options),
             read_network_list);
}

EngineAwaitable<> EngineClient::disconnect_network(std::string id, std::string container_id,
                                                   CallOptions options) {
  return order({.call = EngineCall::NetworkDisconnect,
                .object = std::move(id),
                .body = json::serialize(json::object{{"Container", container_id}})},
               std::move(options));
}

EngineAwaitable<> EngineClient::remove_network(std::string id, CallOptions options) {
  return order({.call = EngineCall::NetworkRemove, .object = std::move(id)}, std::move(options));
}

EngineAwaitable<std::string> EngineClient::create_container(ContainerSpec spec,
                                                            CallOptions options) {
  UrlQuery query;
  if (!spec.name.empty()) query.add("name", spec.name);
  return ask({.call = EngineCall::ContainerCreate,
              .object = spec.name,
              .query = query.text(),
              .body = to_json(spec)},
             std::move(options), read_created_id);
}

EngineAwaitable<ContainerSeen> EngineClient::inspect_container(std::string id,
                                                               CallOptions options) {
  return ask({.call = EngineCall::ContainerInspect, .object = std::move(id)}, std::move(options),
             read_container);
}

EngineAwaitable<std::vector<ContainerListed>> EngineClient::list_containers(EngineLabels labels,
                                                                            CallOptions options) {
  UrlQuery query;
  query.add("all", "1");
  if (!labels.empty()) query.add("filters", label_filter(labels));
  return ask({.call = EngineCall::ContainerList, .query = query.text()}, std::move(options),
             read_container_list);
}

EngineAwaitable<> EngineClient::start_container(std::string id, CallOptions options) {
  return order({.call = EngineCall::ContainerStart, .object = std::move(id)}, std::move(options));
}

EngineAwaitable<> EngineClient::stop_container(std::string id, std::chrono::seconds grace,
                                               CallOptions options) {
  if (!options.deadline) {
    options.deadline = grace + *route_of(EngineCall::ContainerStop).deadline;
  }
  UrlQuery query;
  query.add("t", std::to_string(grace.count()));
  return order({.call = EngineCall::ContainerStop, .object = std::move(id), .query = query.text()},
               std::move(options));
}

EngineAwaitable<> EngineClient::kill_container(std::string id, CallOptions options) {
  return order({.call = EngineCall::ContainerKill, .object = std::move(id)}, std::move(options));
}

EngineAwaitable<> EngineClient::pause_container(std::string id, CallOptions options) {
  return set_paused(std::move(id), true, std::move(options));
}

EngineAwaitable<> EngineClient::unpause_container(std::string id, CallOptions options) {
  return set_paused(std::move(id), false, std::move(options));
}

// The engine refuses what is done already, a pause with 409 and an unpause with 500. Only the
// container's state distinguishes that from a real refusal.
EngineAwaitable<> EngineClient::set_paused(std::string id, bool is_paused, CallOptions options) {
  const EngineCall call = is_paused ? EngineCall::ContainerPause : EngineCall::ContainerUnpause;
  const auto answer = co_await transport_.call({.call = call, .object = id}, options);
  if (answer) co_return EngineResult<>{};
  const EngineErrorKind kind = answer.error().kind();
  if (kind != EngineErrorKind::Conflict && kind != EngineErrorKind::Refused) {
    co_return std::unexpected(answer.error());
  }
  AGBOX_CO_TRY(seen, co_await inspect_container(std::move(id), std::move(options)));
  if (seen.is_paused == is_paused) co_return EngineResult<>{};
  co_return std::unexpected(answer.error());
}

EngineAwaitable<> EngineClient::wait_until_removed(std::string id, CallOptions options) {
  return wait_until(std::move(id), "removed", std::move(options));
}

EngineAwaitable<> EngineClient::wait_until_ended(std::string id, CallOptions options) {
  return wait_until(std::move(id), "not-running", std::move(options));
}

EngineAwaitable<> EngineClient::wait_until(std::string id, std::string_view condition,
                                           CallOptions options) {
  return order({.call = EngineCall::ContainerWait,
                .object = std::move(id),
                .query = UrlQuery().add("condition", condition).text()},
               std::move(options));
}

EngineAwaitable<FileSeen> EngineClient::stat_path(std::string id, std::string path,
                                                  CallOptions options) {
  return ask({.call = EngineCall::ContainerPathStat,
              .object = std::move(id),
              .query = UrlQuery().add("path", path).text(),
              .answer_header = "X-Docker-Container-Path-Stat"},
             std::move(options), read_path_stat);
}

EngineAwaitable<> EngineClient::remove_container(std::string id, RemoveOptions remove,
                                                 CallOptions options) {
  UrlQuery query;
  query.add_flag("force", remove.force).add_flag("v", remove.with_volumes);
  return order(
      {.call = EngineCall::ContainerRemove, .object = std::move(id), .query = query.text()},
      std::move(options));
}

EngineAwaitable<EngineStream> EngineClient::open_events(EventFilter filter, CallOptions options) {
  UrlQuery query;
  query.add("filters", filters_of(filter));
  // The head of the answer comes immediately; only then may the stream be silent for long.
  if (!options.deadline) options.deadline = route_of(EngineCall::Ping).deadline;
  AGBOX_CO_TRY(stream, co_await transport_.open({.call = EngineCall::Events, .query = query.text()},
                                                std::move(options)));
  stream.set_deadline(std::nullopt);
  co_return std::move(stream);
}

}  // namespace agbox
