// SPDX-License-Identifier: Apache-2.0
#include "engine/docker/api/engine_client.h"

#include <boost/json.hpp>

#include "async/retry_timer.h"
#include "engine/docker/api/line_splitter.h"
#include "engine/docker/api/output_tail.h"
#include "engine/docker/api/refusal.h"
#include "engine/docker/api/url_query.h"

namespace agbox {
namespace {

constexpr std::size_t kMostOutput = std::size_t{1}
                                    << 20;  // of one process that is run, or of a log

namespace json = boost::json;

// Adds the attempt to the error of an unreadable answer.
template <class T>
EngineResult<T> named(EngineResult<T> value, EngineCall call, std::string_view object) {
  if (value) return value;
  return std::unexpected(value.error().within(describe(call, object)));
}

// For the end of a process whose output has ended.
constexpr std::chrono::milliseconds kFirstExitWait{5};
constexpr std::chrono::milliseconds kLongestExitWait{250};

std::unexpected<EngineError> overrun(std::chrono::milliseconds timeout) {
  std::string seconds = std::to_string(std::chrono::duration<double>(timeout).count());
  seconds.resize(seconds.find('.') + 2);
  return engine_fail(EngineErrorKind::TimedOut, "it did not end within " + seconds + " s");
}

// As the engine's API has it: seconds since 1970, with nine decimals.
std::string seconds_of(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  std::string decimals = std::to_string((time - seconds).count());
  decimals.insert(0, 9 - decimals.size(), '0');
  return std::to_string(seconds.time_since_epoch().count()) + "." + decimals;
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
  return ask({.call = EngineCall::NetworkCreate,
              .object = spec.name,
              .make_body = [spec](ApiVersion api) { return to_json(spec, api); }},
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

EngineAwaitable<> EngineClient::disconnect_network(std::string id, std::string container,
                                                   CallOptions options, Disconnect what) {
  const json::object body{{"Container", container}, {"Force", what == Disconnect::StaleEndpoint}};
  return order({.call = EngineCall::NetworkDisconnect,
                .object = std::move(id),
                .body = json::serialize(body)},
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
              .make_body = [spec](ApiVersion api) { return to_json(spec, api); }},
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

EngineAwaitable<std::string> EngineClient::read_output(std::string id, int lines,
                                                       CallOptions options) {
  UrlQuery query;
  query.add("stdout", "1").add("stderr", "1").add("tail", std::to_string(lines));
  return read_to_end(
      {.call = EngineCall::ContainerLogs, .object = std::move(id), .query = query.text()},
      std::move(options));
}

EngineAwaitable<EngineStream> EngineClient::open_log(std::string id, LogQuery query,
                                                     CallOptions options) {
  UrlQuery text;
  text.add_flag("stdout", query.with_stdout).add_flag("stderr", query.with_stderr);
  text.add_flag("follow", query.follow).add("timestamps", "1");
  if (query.after) query.since = query.after->time;
  if (query.since) text.add("since", seconds_of(*query.since));
  text.add("tail", query.tail && !query.after ? std::to_string(*query.tail) : "all");
  AGBOX_CO_TRY(stream, co_await transport_.open({.call = EngineCall::ContainerLogs,
                                                 .object = std::move(id),
                                                 .query = text.text()},
                                                std::move(options)));
  stream.set_deadline(std::nullopt);
  co_return std::move(stream);
}

EngineAwaitable<ContainerUsage> EngineClient::measure_container(std::string id,
                                                                CallOptions options) {
  // One shot: the engine would otherwise measure for a second to compare.
  return ask({.call = EngineCall::ContainerStats,
              .object = std::move(id),
              .query = UrlQuery().add("stream", "0").add("one-shot", "1").text()},
             std::move(options), read_usage);
}

EngineAwaitable<std::string> EngineClient::read_to_end(EngineRequest request, CallOptions options) {
  AGBOX_CO_TRY(stream, co_await transport_.open(std::move(request), std::move(options)));
  OutputTail output;
  std::size_t bytes = 0;
  while (true) {
    AGBOX_CO_TRY(piece, co_await stream.read_some());
    if (piece.empty()) co_return output.shown();
    // It could go on for as long as it may run, on our only thread.
    bytes += piece.size();
    if (bytes > kMostOutput) {
      co_return engine_fail(EngineErrorKind::Refused, "it printed more than 1 MiB");
    }
    output.feed(piece);
  }
}

EngineAwaitable<std::string> EngineClient::create_exec(std::string container_id,
                                                       std::vector<std::string> command,
                                                       CallOptions options) {
  const json::object body{{"AttachStdout", true},
                          {"AttachStderr", true},
                          {"Cmd", json::array(command.begin(), command.end())}};
  return ask({.call = EngineCall::ExecCreate,
              .object = std::move(container_id),
              .body = json::serialize(body)},
             std::move(options), read_created_id);
}

EngineAwaitable<std::string> EngineClient::run_exec(std::string exec_id, CallOptions options) {
  return read_to_end({.call = EngineCall::ExecStart,
                      .object = std::move(exec_id),
                      .body = R"({"Detach":false,"Tty":false})"},
                     std::move(options));
}

EngineAwaitable<ExecSeen> EngineClient::inspect_exec(std::string exec_id, CallOptions options) {
  return ask({.call = EngineCall::ExecInspect, .object = std::move(exec_id)}, std::move(options),
             read_exec);
}

EngineAwaitable<ProcessEnd> EngineClient::run_process(std::string container_id,
                                                      std::vector<std::string> command,
                                                      std::chrono::milliseconds timeout,
                                                      CallOptions options) {
  AGBOX_CO_TRY(exec_id, co_await create_exec(std::move(container_id), std::move(command), options));
  const auto limit = std::chrono::steady_clock::now() + timeout;
  CallOptions limited = options;
  limited.deadline = timeout;
  auto output = co_await run_exec(exec_id, std::move(limited));
  if (!output && output.error().kind() == EngineErrorKind::TimedOut) co_return overrun(timeout);
  if (!output) co_return std::unexpected(std::move(output.error()));
  RetryTimer timer(executor(), kFirstExitWait, kLongestExitWait);
  while (true) {
    AGBOX_CO_TRY(seen, co_await inspect_exec(exec_id, options));
    if (seen.exit_code && !seen.is_running) {
      co_return ProcessEnd{.exit_code = static_cast<int>(*seen.exit_code),
                           .output = std::move(*output)};
    }
    if (std::chrono::steady_clock::now() >= limit) co_return overrun(timeout);
    if (!co_await timer.wait()) co_return engine_fail(EngineErrorKind::Cancelled, "cancelled");
  }
}

EngineAwaitable<std::int64_t> EngineClient::start_process(std::string container_id,
                                                          std::vector<std::string> command,
                                                          CallOptions options) {
  const json::object body{{"User", "0:0"}, {"Cmd", json::array(command.begin(), command.end())}};
  AGBOX_CO_TRY(exec_id, co_await ask({.call = EngineCall::ExecCreate,
                                      .object = std::move(container_id),
                                      .body = json::serialize(body)},
                                     options, read_created_id));
  CallOptions limited = options;
  if (!limited.deadline) limited.deadline = route_of(EngineCall::ExecCreate).deadline;
  AGBOX_CO_TRY_VOID(co_await order(
      {.call = EngineCall::ExecStart, .object = exec_id, .body = R"({"Detach":true,"Tty":false})"},
      std::move(limited)));
  AGBOX_CO_TRY(seen, co_await inspect_exec(exec_id, options));
  // The pid of one that has ended is 0, or may be another process's by now.
  if (!seen.is_running || seen.pid <= 0) {
    co_return engine_fail(EngineErrorKind::Refused, "the process has ended at once");
  }
  co_return seen.pid;
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
