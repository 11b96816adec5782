// SPDX-License-Identifier: Apache-2.0
#include "support/fake_docker/fake_server.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <filesystem>

#include "base/check.h"
#include "engine/docker/api/engine_identity.h"
#include "model/spec/image_reference.h"
#include "support/fake_docker/fake_json.h"

namespace agbox::fake {
namespace {

std::string percent_decode(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      plain += text[i] == '+' ? ' ' : text[i];
    }
  }
  return plain;
}

// Takes "/v1.41" off the path.
std::string take_version(std::string& path) {
  if (!path.starts_with("/v1.")) return {};
  const std::size_t slash = std::min(path.find('/', 1), path.size());
  std::string version = path.substr(2, slash - 2);
  path.erase(0, slash);
  return version;
}

}  // namespace

Server::Server(asio::io_context& loop) : io(loop), acceptor(loop), bell(loop) {
  std::string pattern = (std::filesystem::temp_directory_path() / "fkd-XXXXXX").string();
  AGBOX_CHECK(::mkdtemp(pattern.data()) != nullptr, "mkdtemp for a fake engine");
  directory = pattern;
  socket_path = directory + "/docker.sock";
}

void Server::begin() {
  engine.on_change = [this] { bell.ring(); };
  engine.on_event = [this](const json::object& event) { publish(event); };
  listen();
}

void Server::listen() {
  const stream_protocol::endpoint endpoint(socket_path);
  acceptor.open(endpoint.protocol());
  acceptor.bind(endpoint);
  acceptor.listen();
  spawn(accept(shared_from_this()));
}

void Server::stop() {
  boost::system::error_code ignored;
  acceptor.close(ignored);
  ::unlink(socket_path.c_str());
  for (const auto& session : sessions) session->socket.close(ignored);
  bell.ring();
}

void Server::spawn(asio::awaitable<void> task) {
  // The sessions end with their sockets; what escapes from one is a bug in the fake.
  asio::co_spawn(io, std::move(task), [](const std::exception_ptr& failure) {
    if (failure) std::rethrow_exception(failure);
  });
}

asio::awaitable<void> Server::accept(std::shared_ptr<Server> self) {
  while (true) {
    auto session = std::make_shared<Session>(self->io);
    const auto [problem] = co_await self->acceptor.async_accept(session->socket, kAwait);
    if (problem) co_return;
    self->sessions.push_back(session);
    self->spawn(serve(self, session));
  }
}

asio::awaitable<void> Server::serve(std::shared_ptr<Server> self,
                                    std::shared_ptr<Session> session) {
  bool goes_on = true;
  while (goes_on) {
    http::request_parser<http::string_body> parser;
    parser.body_limit(std::uint64_t{1} << 30);
    const auto [problem, length] =
        co_await http::async_read(session->socket, session->buffer, parser, kAwait);
    if (problem) break;
    goes_on = co_await self->handle(*session, parser.release());
  }
  boost::system::error_code ignored;
  session->socket.close(ignored);
  self->sessions.remove(session);
  self->bell.ring();
}

asio::awaitable<bool> Server::handle(Session& session, http::request<http::string_body> message) {
  Request request{.method = std::string(message.method_string()),
                  .path = std::string(message.target()),
                  .query = {},
                  .body = std::move(message.body()),
                  .registry_auth = std::string(message["X-Registry-Auth"])};
  if (const std::size_t mark = request.path.find('?'); mark != std::string::npos) {
    read_query(std::string_view(request.path).substr(mark + 1), request.query);
    request.path.resize(mark);
  }
  session.is_head = request.method == "HEAD";
  request.path = percent_decode(request.path);
  const std::string version = take_version(request.path);
  const std::string call = request.method + " " + request.path;
  const std::string named = engine.named(request);
  log.push_back(call);
  named_log.push_back(named);
  if (const auto problem = version_problem(version)) {
    co_return co_await write(session, *problem);
  }
  const Fault fault = take_fault(call, named);
  bell.ring();
  switch (fault.kind) {
    case FaultKind::None:
      break;
    case FaultKind::Reply:
      co_return co_await write(session, {.status = fault.status, .body = fault.text});
    case FaultKind::Drop:
      co_return false;
    case FaultKind::Garble:
      co_await asio::async_write(session.socket, asio::buffer(fault.text), kAwait);
      co_return false;
    case FaultKind::LoseAnswer:
      co_await perform_silently(request);
      co_return false;
    case FaultKind::Hang:
    case FaultKind::Hold:
      if (!co_await wait_for_release(session, fault, call)) co_return false;
      break;
  }
  co_return co_await perform(session, request);
}

asio::awaitable<bool> Server::perform(Session& session, const Request& request) {
  const std::string call = request.method + " " + request.path;
  if (call == "GET /events") co_return co_await send_events(session, request);
  if (call == "POST /images/create") co_return co_await pull(session, request);
  if (matches_glob("POST /containers/*/wait", call)) {
    co_return co_await wait_container(session, request);
  }
  if (matches_glob("GET /containers/*/logs", call) && request.query.contains("follow")) {
    co_return co_await follow_log(session, request);
  }
  if (matches_glob("POST /exec/*/start", call)) co_return co_await start_exec(session, request);
  co_return co_await write(session, engine.answer(request));
}

asio::awaitable<void> Server::perform_silently(const Request& request) {
  if (request.path == "/images/create") {
    finish_pull(request);
  } else {
    engine.answer(request);
  }
  co_return;
}

std::string Server::between(const std::string& text, std::string_view before,
                            std::string_view after) {
  return text.substr(before.size(), text.size() - before.size() - after.size());
}

void Server::read_query(std::string_view text, std::map<std::string, std::string>& into) {
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    into[percent_decode(part.substr(0, equals))] =
        percent_decode(part.substr(std::min(equals + 1, part.size())));
  }
}

std::optional<Reply> Server::version_problem(const std::string& version) const {
  const auto asked = parse_api_version(version);
  if (!asked) return std::nullopt;
  if (*asked > *parse_api_version(engine.newest_api)) {
    return refuse(400, "client version " + version +
                           " is too new. Maximum supported API version is " + engine.newest_api);
  }
  if (*asked < *parse_api_version(engine.oldest_api)) {
    return refuse(400, "client version " + version +
                           " is too old. Minimum supported API version is " + engine.oldest_api +
                           ", please upgrade your client to a newer version");
  }
  return std::nullopt;
}

Fault Server::take_fault(const std::string& call, const std::string& named) {
  for (auto fault = faults.rbegin(); fault != faults.rend(); ++fault) {
    if (fault->times == 0) continue;
    if (!matches_glob(fault->pattern, call) && !matches_glob(fault->pattern, named)) {
      continue;
    }
    if (fault->times > 0) --fault->times;
    return *fault;
  }
  return {};
}

template <class Condition>
asio::awaitable<bool> Server::wait_until(Session& session, Condition holds) {
  using namespace asio::experimental::awaitable_operators;
  while (!holds()) {
    const auto woken = co_await (
        bell.wait() || session.socket.async_wait(stream_protocol::socket::wait_read, kAwait));
    if (woken.index() == 1 || !session.socket.is_open()) co_return false;
  }
  co_return true;
}

asio::awaitable<bool> Server::wait_for_release(Session& session, const Fault& fault,
                                               const std::string& call) {
  const auto place = held_calls.insert(call);
  const bool is_there = co_await wait_until(
      session, [&] { return fault.kind == FaultKind::Hold && released.contains(fault.pattern); });
  held_calls.erase(place);
  if (!is_there) abandoned_calls.push_back(call);
  bell.ring();
  co_return is_there;
}

asio::awaitable<bool> Server::write(Session& session, const Reply& reply) {
  http::response<http::string_body> message(static_cast<http::status>(reply.status), 11);
  message.set("Api-Version", engine.newest_api);
  message.set(http::field::server, "Docker/" + engine.version + " (linux)");
  if (!reply.body.empty()) {
    message.set(http::field::content_type, reply.content_type);
    message.body() = reply.body;
  }
  for (const auto& [name, value] : reply.headers) message.set(name, value);
  if (reply.status != 204 && reply.status != 304) message.prepare_payload();
  if (session.is_head) message.body().clear();  // its length is sent nevertheless
  const auto [problem, length] = co_await http::async_write(session.socket, message, kAwait);
  co_return !problem;
}

asio::awaitable<bool> Server::write_head(Session& session) {
  const std::string head =
      "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto [problem, length] =
      co_await asio::async_write(session.socket, asio::buffer(head), kAwait);
  co_return !problem;
}

asio::awaitable<bool> Server::write_chunk(Session& session, const std::string& text) {
  const auto [problem, length] =
      co_await asio::async_write(session.socket, http::make_chunk(asio::buffer(text)), kAwait);
  co_return !problem;
}

asio::awaitable<bool> Server::write_last_chunk(Session& session) {
  const auto [problem, length] =
      co_await asio::async_write(session.socket, http::make_chunk_last(), kAwait);
  co_return !problem;
}

asio::awaitable<bool> Server::wait_container(Session& session, const Request& request) {
  const std::string object = between(request.path, "/containers/", "/wait");
  const Container* container = engine.find_container(object);
  if (container == nullptr) {
    co_return co_await write(session, refuse(404, "No such container: " + object));
  }
  const std::string id = container->id;
  const int exits = container->exits;
  int exit_code = container->exit_code;
  const auto condition = request.query.find("condition");
  const std::string what = condition == request.query.end() ? "" : condition->second;
  if (!co_await write_head(session)) co_return false;
  const bool is_there = co_await wait_until(session, [&] {
    const auto found = engine.containers.find(id);
    if (found == engine.containers.end()) return true;
    exit_code = found->second.exit_code;
    if (what == "removed") return false;
    if (what == "next-exit") return found->second.exits > exits;
    return !found->second.is_running();
  });
  if (!is_there) co_return false;
  co_await write_chunk(session,
                       "{\"Error\":null,\"StatusCode\":" + std::to_string(exit_code) + "}\n");
  co_return co_await write_last_chunk(session);
}

asio::awaitable<bool> Server::follow_log(Session& session, const Request& request) {
  const std::string object = between(request.path, "/containers/", "/logs");
  const Container* found = engine.find_container(object);
  const Reply so_far = engine.answer(request);
  if (found == nullptr || !found->is_running()) co_return co_await write(session, so_far);
  const std::string id = found->id;
  const int exits = found->exits;
  std::size_t sent = found->log.size();
  if (!co_await write_head(session)) co_return false;
  if (!so_far.body.empty() && !co_await write_chunk(session, so_far.body)) co_return false;
  const auto has_ended = [&] {
    const Container* now = engine.find_container(id);
    return now == nullptr || now->exits != exits;
  };
  while (true) {
    const bool is_there = co_await wait_until(
        session, [&] { return has_ended() || engine.find_container(id)->log.size() > sent; });
    if (!is_there) co_return false;
    if (const Container* now = engine.find_container(id)) {
      const std::string frames = Engine::log_frames(*now, sent, request);
      sent = now->log.size();
      if (!frames.empty() && !co_await write_chunk(session, frames)) co_return false;
    }
    if (has_ended()) co_return co_await write_last_chunk(session);
  }
}

asio::awaitable<bool> Server::start_exec(Session& session, const Request& request) {
  const std::string exec_id = between(request.path, "/exec/", "/start");
  if (parse_body(request.body)["Detach"] == json::value(true)) {
    co_return co_await write(session, engine.detach_exec(exec_id));
  }
  const Reply reply = engine.start_exec(exec_id);
  if (reply.status != 200) co_return co_await write(session, reply);
  const std::string answer =
      "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n" + reply.body;
  co_await asio::async_write(session.socket, asio::buffer(answer), kAwait);
  if (!engine.has_end(exec_id)) co_await wait_until(session, [] { return false; });
  co_return false;
}

std::string Server::pulled_reference(const Request& request) {
  const std::string tag = request.query.at("tag");
  const auto parsed =
      parse_image_reference(request.query.at("fromImage") + (tag.contains(':') ? "@" : ":") + tag);
  return parsed ? parsed->canonical() : std::string();
}

void Server::finish_pull(const Request& request) {
  const std::string reference = pulled_reference(request);
  const auto plan = engine.registry.find(reference);
  if (plan == engine.registry.end() || !plan->second.succeeds) return;
  if (engine.find_image(reference) == nullptr) {
    engine.add_image(reference, plan->second.image_config);
  }
}

asio::awaitable<bool> Server::pull(Session& session, const Request& request) {
  const std::string reference = pulled_reference(request);
  const auto found = engine.registry.find(reference);
  if (found == engine.registry.end() || (!found->second.required_auth.empty() &&
                                         found->second.required_auth != request.registry_auth)) {
    co_return co_await write(session,
                             refuse(404, "pull access denied for " + request.query.at("fromImage") +
                                             ", repository does not exist or may require 'docker "
                                             "login': denied: requested access to the resource is "
                                             "denied"));
  }
  const std::vector<std::string> lines = found->second.lines;
  if (!co_await write_head(session)) co_return false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string step = "PULL " + reference + " " + std::to_string(i);
    const Fault fault = take_fault(step, step);
    if (fault.kind == FaultKind::Drop) co_return false;
    if (fault.kind == FaultKind::Hang || fault.kind == FaultKind::Hold) {
      if (!co_await wait_for_release(session, fault, step)) co_return false;
    }
    if (!co_await write_chunk(session, lines[i] + "\r\n")) co_return false;
  }
  finish_pull(request);
  co_return co_await write_last_chunk(session);
}

void Server::publish(const json::object& event) {
  const auto& attributes = event.at("Actor").at("Attributes").as_object();
  std::map<std::string, std::string> labels;
  for (const auto& field : attributes) {
    labels[field.key()] = std::string(field.value().as_string());
  }
  const std::string type(event.at("Type").as_string());
  const std::string action(event.at("Action").as_string());
  for (const auto& session : sessions) {
    if (!session->is_event_stream) continue;
    const auto allows = [&](std::string_view key, const std::string& value) {
      const auto values = filter_values(session->filters, key);
      return values.empty() || std::ranges::any_of(values, [&](const std::string& wanted) {
               return wanted == value || value.starts_with(wanted + ":");
             });
    };
    if (!allows("type", type) || !allows("event", action)) continue;
    if (!matches_label_filter(labels, session->filters)) continue;
    session->events.push_back(json::serialize(event) + "\n");
  }
  bell.ring();
}

asio::awaitable<bool> Server::send_events(Session& session, const Request& request) {
  session.filters = parse_filters(request);
  if (!co_await write_head(session)) co_return false;
  session.is_event_stream = true;
  bell.ring();
  while (co_await wait_until(session, [&] { return !session.events.empty(); })) {
    const std::string line = std::move(session.events.front());
    session.events.pop_front();
    if (!co_await write_chunk(session, line)) break;
  }
  session.is_event_stream = false;
  co_return false;
}

}  // namespace agbox::fake
