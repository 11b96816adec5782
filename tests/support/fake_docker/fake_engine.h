// SPDX-License-Identifier: Apache-2.0
// What a container engine knows and answers, without any network: containers, networks, images and
// execs that behave like Docker's as far as a client can tell, with its status codes and its texts.
// FakeDocker puts it behind a socket. Containers run nothing: tests say when they end.
#pragma once

#include <boost/json.hpp>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace agbox::fake {

namespace json = boost::json;

// In a container; the bits of Go's os.FileMode.
struct File {
  std::uint32_t mode = 0644;
  std::int64_t size = 100;
  std::string link_target{};
};
inline constexpr std::uint32_t kDirectoryMode = (1U << 31U) | 0755U;
inline constexpr std::uint32_t kLinkMode = (1U << 27U) | 0777U;
inline constexpr std::uint32_t kFifoMode = (1U << 25U) | 0644U;

// What a process that is run in a container does.
struct ExecAnswer {
  int exit_code = 0;
  std::string output{};  // on its standard output
  std::string errors{};  // on its standard error
  bool has_end = true;
};

struct Exec {
  std::string container_id;
  std::vector<std::string> command{};
  bool has_run = false;
  ExecAnswer answer{};  // of its run
};

// What a container printed: a line, with its end, or a part of one.
struct LogLine {
  std::int64_t nanoseconds = 0;  // since 1970
  char output = 1;               // 2: standard error
  std::string text{};
};

struct Container {
  std::string id;
  std::string name;
  json::object spec;  // the body of its create
  std::map<std::string, std::string> labels;
  std::string image_id;
  std::string status = "created";
  bool is_paused = false;
  bool was_oom_killed = false;
  int exit_code = 0;
  int pid = 0;
  int exits = 0;
  std::string error;
  std::string created_at;
  std::string started_at = "0001-01-01T00:00:00Z";
  std::string finished_at = "0001-01-01T00:00:00Z";
  std::string health;        // empty, starting, healthy, unhealthy
  std::string probe_output;  // of the latest check of its health
  ExecAnswer exec_answer;    // of every process that is run in it
  std::vector<LogLine> log;  // see Engine::print()
  json::object usage;        // while it runs: the engine's stats, but for the time
  std::string network;
  std::string ipv4_address;
  std::string stop_timeout;  // of the latest stop, in seconds, as asked for
  std::map<std::string, File> files;

  bool is_running() const { return status == "running" || status == "restarting"; }
};

struct Network {
  std::string id;
  std::string name;
  json::object spec;
  std::map<std::string, std::string> labels;
  std::string subnet;
  std::string bridge_name;
  unsigned next_host = 2;
  // Names of containers whose endpoint was kept when they were removed, as on a full disk.
  std::set<std::string> stale_endpoints;
};

struct Image {
  std::string id;
  std::vector<std::string> names;  // canonical: docker.io/library/busybox:latest
  json::object config;
  std::map<std::string, File> files = {
      {"/etc", {.mode = kDirectoryMode}}, {"/etc/passwd", {}}, {"/etc/group", {}}};
};

// What the registry answers to a pull: the lines of the progress stream, and the image that is
// there afterwards.
struct PullPlan {
  std::vector<std::string> lines{};
  json::object image_config{};
  bool succeeds = true;
  std::string required_auth{};  // X-Registry-Auth without which it is refused
};

struct Request {
  std::string method;
  std::string path;  // without the version
  std::map<std::string, std::string> query;
  std::string body;
  std::string registry_auth;
};

struct Reply {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  std::map<std::string, std::string> headers{};
};

class Engine {
 public:
  // A call that is answered at once. Waits, pulls and events are FakeDocker's.
  Reply answer(const Request& request);

  Container* find_container(std::string_view id_or_name);
  Network* find_network(std::string_view id_or_name);
  Image* find_image(std::string_view reference);

  Image& add_image(std::string_view reference, json::object config = {});
  void end_container(Container& container, int exit_code, bool oom_killed = false);
  // As Docker 28 does to one whose start it began before a crash and is asked for once more: it
  // runs on without its network.
  void cut_off(Container& container);
  void set_health(Container& container, std::string_view health, std::string_view output = {});
  // The container prints these lines, each a moment after the one before.
  void print(Container& container, std::string_view lines, char output = 1);
  // Its lines from this one on, as the request wants them.
  static std::string log_frames(const Container& container, std::size_t first,
                                const Request& request);
  // Runs what was created. The body ends with the connection, unless it is a refusal.
  Reply start_exec(const std::string& exec_id);
  // It runs on, and its output goes nowhere.
  Reply detach_exec(const std::string& exec_id);
  bool has_end(const std::string& exec_id) const;
  // "POST /containers/<id>/start" with the object's name in the place of its id; the container's in
  // that of an exec.
  std::string named(const Request& request);

  std::map<std::string, Container> containers;
  std::map<std::string, Network> networks;
  std::map<std::string, Image> images;
  std::map<std::string, PullPlan> registry;  // by canonical reference
  std::map<std::string, Exec> execs;
  // Of every process that is run in a companion of this name, instead of its container's answer.
  std::map<std::string, ExecAnswer> probes;

  std::string id = "FAKE:ENGINE:0001";
  std::string version = "20.10.24";
  std::string newest_api = "1.41";
  std::string oldest_api = "1.12";
  json::object info_overrides;
  int exit_code_of_stop = 137;

  std::function<void(Container&)> on_start;
  std::function<void(Container&, const Exec&)> on_exec;  // before it is run
  // Told of every event, and of every change that a wait may be waiting for.
  std::function<void(const json::object& event)> on_event;
  std::function<void()> on_change;

 private:
  Reply answer_container(const Request& request, const std::string& id, std::string_view action);
  Reply create_container(const Request& request);
  Reply start(Container& container);
  Reply pause(Container& container, bool is_paused);
  Reply remove(Container& container, const Request& request);
  static Reply stat_path(const Container& container, const std::string& path);
  Reply inspect(const Container& container) const;
  Reply create_exec(const Container& container, const Request& request);
  Reply inspect_exec(const std::string& exec_id) const;
  static Reply stats(const Container& container);
  static Reply logs(const Container& container, const Request& request);
  Reply list_containers(const Request& request) const;
  Reply create_network(const Request& request);
  Reply disconnect(const Request& request, const std::string& network_name);
  Reply remove_network(Network& network);
  json::object show(const Network& network) const;
  Reply list_networks(const Request& request) const;
  Reply inspect_image(const std::string& reference);
  Reply version_reply() const;
  Reply info_reply() const;
  void emit(std::string_view type, std::string_view action, const std::string& id,
            const std::map<std::string, std::string>& attributes);
  void emit(std::string_view action, const Container& container,
            std::map<std::string, std::string> more = {});
  std::string new_id();

  std::map<std::string, std::string, std::less<>> container_ids_;  // by name
  std::uint64_t ids_ = 0;
  int pids_ = 1000;
};

Reply refuse(int status, std::string_view message);
// Whether labels hold all of the "label" filters of a list or event call.
bool matches_label_filter(const std::map<std::string, std::string>& labels,
                          const json::object& filters);
json::object parse_filters(const Request& request);
// The values of one filter, which clients may write as a list or as a map.
std::vector<std::string> filter_values(const json::object& filters, std::string_view key);
// `*` stands for any text.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace agbox::fake
