// SPDX-License-Identifier: Apache-2.0
// Processes that are run in containers, and what containers printed. Nothing runs: a test sets how
// they end.
#include <unistd.h>

#include <algorithm>

#include "model/object_names.h"
#include "support/fake_docker/fake_json.h"

namespace agbox::fake {
namespace {

// Which output, three zeros, the size of what follows, and that.
std::string frame(char output, std::string_view bytes) {
  if (bytes.empty()) return {};
  std::string made{output, 0, 0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) {
    made += static_cast<char>((bytes.size() >> static_cast<unsigned>(shift)) & 0xFFU);
  }
  return made.append(bytes);
}

constexpr char kStdout = 1;
constexpr char kStderr = 2;

// "1700000000.000000001", as in a query.
std::int64_t nanoseconds_of(const std::string& seconds) {
  if (seconds.empty()) return 0;
  const std::size_t dot = seconds.find('.');
  std::int64_t time = std::stoll(seconds) * 1'000'000'000;
  if (dot != std::string::npos) time += std::stoll(seconds.substr(dot + 1));
  return time;
}

std::optional<Reply> why_nothing_runs_in(const Container& container) {
  if (!container.is_running()) {
    return refuse(409, "Container " + container.id + " is not running");
  }
  if (container.is_paused) {
    return refuse(409,
                  "Container " + container.name + " is paused, unpause the container before exec");
  }
  return std::nullopt;
}

}  // namespace

Reply Engine::create_exec(const Container& container, const Request& request) {
  if (const auto problem = why_nothing_runs_in(container)) return *problem;
  Exec exec{.container_id = container.id};
  for (const json::value& part : array_at(parse_body(request.body), "Cmd")) {
    exec.command.emplace_back(part.as_string());
  }
  if (exec.command.empty()) return refuse(400, "No exec command specified");
  const std::string exec_id = new_id();
  execs[exec_id] = std::move(exec);
  return ok(json::object{{"Id", exec_id}}, 201);
}

Reply Engine::start_exec(const std::string& exec_id) {
  const auto found = execs.find(exec_id);
  Container* const container =
      found == execs.end() ? nullptr : find_container(found->second.container_id);
  if (container == nullptr) return refuse(404, "No such exec instance: " + exec_id);
  if (const auto problem = why_nothing_runs_in(*container)) return *problem;
  Exec& exec = found->second;
  // The answer has begun by then.
  if (exec.has_run) return {.body = frame(kStdout, "Exec " + exec_id + " has already run\r\n")};
  exec.has_run = true;
  if (on_exec) on_exec(*container, exec);
  const auto probe = probes.find(companion_of(container->labels).value_or(""));
  exec.answer = probe == probes.end() ? container->exec_answer : probe->second;
  return {.body = frame(kStdout, exec.answer.output) + frame(kStderr, exec.answer.errors)};
}

Reply Engine::detach_exec(const std::string& exec_id) {
  Reply started = start_exec(exec_id);
  if (started.status != 200) return started;
  execs.at(exec_id).answer.has_end = false;
  return {};
}

bool Engine::has_end(const std::string& exec_id) const {
  return execs.at(exec_id).answer.has_end;
}

Reply Engine::inspect_exec(const std::string& exec_id) const {
  const auto found = execs.find(exec_id);
  if (found == execs.end() || !containers.contains(found->second.container_id)) {
    return refuse(404, "No such exec instance: " + exec_id);
  }
  const Exec& exec = found->second;
  const bool is_running = exec.has_run && !exec.answer.has_end;
  json::value exit_code;
  if (exec.has_run && !is_running) exit_code = exec.answer.exit_code;
  return ok(json::object{{"ID", exec_id},
                         {"Running", is_running},
                         // What runs in containers runs in this process.
                         {"Pid", is_running ? ::getpid() : 0},
                         {"ExitCode", std::move(exit_code)},
                         {"ContainerID", exec.container_id}});
}

void Engine::print(Container& container, std::string_view lines, char output) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size() - 1) + 1;
    std::int64_t time = now_nanoseconds();
    if (!container.log.empty()) time = std::max(time, container.log.back().nanoseconds + 1);
    container.log.push_back({time, output, std::string(lines.substr(0, end))});
    lines.remove_prefix(end);
  }
  if (on_change) on_change();
}

std::string Engine::log_frames(const Container& container, std::size_t first,
                               const Request& request) {
  const std::int64_t since = nanoseconds_of(query(request, "since"));
  std::string frames;
  for (std::size_t i = first; i < container.log.size(); ++i) {
    const LogLine& line = container.log[i];
    if (line.nanoseconds < since) continue;
    if (!has_flag(request, line.output == kStdout ? "stdout" : "stderr")) continue;
    std::string time;
    if (has_flag(request, "timestamps")) time = time_text(line.nanoseconds) + " ";
    frames += frame(line.output, time + line.text);
  }
  return frames;
}

Reply Engine::logs(const Container& container, const Request& request) {
  const std::string tail = query(request, "tail");
  const std::size_t lines = tail.empty() || tail == "all" ? std::string::npos : std::stoul(tail);
  const std::size_t first = container.log.size() - std::min(lines, container.log.size());
  return {.body = log_frames(container, first, request),
          .content_type = "application/vnd.docker.raw-stream"};
}

}  // namespace agbox::fake
