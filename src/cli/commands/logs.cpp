// SPDX-License-Identifier: Apache-2.0
// agbox logs: prints the output of an exec, or of a container of a sandbox, unchanged, and follows
// it.
#include <agbox/container_log_follower.h>
#include <agbox/exec_run.h>

#include <charconv>
#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "base/rfc3339.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/exec_text.h"
#include "cli/id_lookup.h"
#include "cli/interrupt.h"
#include "model/duration.h"

namespace agbox::cli {

namespace {

// The container whose log is that of the sandbox.
constexpr const char* kPrimary = "primary";

struct LogsFlags {
  std::string id;
  std::string stream;
  CLI::Option* stream_flag = nullptr;
  bool follow = false;
  std::string container;
  CLI::Option* container_flag = nullptr;
  std::string tail;
  CLI::Option* tail_flag = nullptr;
  std::string since;
  CLI::Option* since_flag = nullptr;

  bool is_of_container() const { return container_flag->count() > 0; }
  // Which stream was selected; UNSPECIFIED: both.
  v1::OutputStream selected() const {
    if (stream_flag->count() == 0) return v1::OUTPUT_STREAM_UNSPECIFIED;
    return stream == "stdout" ? v1::OUTPUT_STREAM_STDOUT : v1::OUTPUT_STREAM_STDERR;
  }
};

// Writes to one descriptor; a failed write stops the reading.
class OutputWriter {
 public:
  using Write = int (Console::*)(std::string_view) const;
  OutputWriter(const Console& console, Write write, std::stop_source& stop)
      : console_(console), write_(write), stop_(stop) {}

  void operator()(std::string_view bytes) {
    if (problem_ != 0) return;
    problem_ = (console_.*write_)(bytes);
    if (problem_ != 0) stop_.request_stop();
  }
  int problem() const { return problem_; }

 private:
  const Console& console_;
  Write write_;
  std::stop_source& stop_;
  int problem_ = 0;
};

// Where both outputs go. A stream selected with --stream is the result, so it goes to stdout.
class OutputWriters {
 public:
  OutputWriters(const Console& console, const LogsFlags& flags, std::stop_source& stop)
      : selected_(flags.selected()),
        out_(console, &Console::write_stdout, stop),
        error_(console, &Console::write_stderr, stop) {}

  sdk::OutputSinks sinks() {
    if (selected_ == v1::OUTPUT_STREAM_STDOUT) return {.on_stdout = std::ref(out_)};
    if (selected_ == v1::OUTPUT_STREAM_STDERR) return {.on_stderr = std::ref(out_)};
    return {.on_stdout = std::ref(out_), .on_stderr = std::ref(error_)};
  }
  bool has_failed() const { return out_.problem() != 0 || error_.problem() != 0; }
  int report(Console& console) const {
    if (out_.problem() != 0) console.report_write_problem(out_.problem());
    return kRuntimeError;
  }

 private:
  v1::OutputStream selected_;
  OutputWriter out_;
  OutputWriter error_;
};

int show_exec_logs(Console& console, const sdk::RawClient& client, const LogsFlags& flags,
                   const std::string& exec_id) {
  const Interrupt interrupt;
  std::stop_source stop;
  const std::stop_callback on_signal(interrupt.token(), [&stop] { stop.request_stop(); });
  OutputWriters writers(console, flags, stop);
  const auto read =
      sdk::read_output(client, exec_id, writers.sinks(), {.stop = stop.get_token()},
                       flags.follow ? sdk::OutputExtent::UntilExit : sdk::OutputExtent::SoFar);
  if (writers.has_failed()) return writers.report(console);
  if (!read && interrupt.token().stop_requested()) return interrupt.exit_code();
  if (!read) return fail_call(console, "read exec output", read.error());
  v1::GetExecRequest request;
  request.set_exec_id(exec_id);
  const auto response = client.get_exec(request);
  if (!response) return fail_call(console, "get exec", response.error());
  const std::string warning = truncation_text(response->exec());
  if (!warning.empty()) console.error(warning);
  return kSuccess;
}

std::optional<std::uint64_t> parse_lines(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc() || rest != end) return std::nullopt;
  return value;
}

// A time, or how long ago it was.
std::optional<WallTime> parse_since(const std::string& text) {
  if (const auto time = parse_rfc3339(text)) return time;
  const auto age = parse_duration(text);
  if (!age || *age < std::chrono::nanoseconds::zero()) return std::nullopt;
  const WallTime since = WallTime(std::chrono::system_clock::now()) - *age;
  return std::max(since, WallTime());
}

int show_container_logs(Console& console, const sdk::RawClient& client, const LogsFlags& flags,
                        const std::string& sandbox_id, const std::string& container) {
  v1::ReadContainerLogsRequest request;
  request.set_sandbox_id(sandbox_id);
  request.set_container(container);
  request.set_follow(flags.follow);
  request.set_stream(flags.selected());
  if (flags.tail_flag->count() > 0) {
    const auto lines = parse_lines(flags.tail);
    if (!lines) {
      return refuse_usage(console, "--tail: \"" + flags.tail + "\" is not a number of lines");
    }
    request.set_tail(*lines);
  }
  if (flags.since_flag->count() > 0) {
    const auto since = parse_since(flags.since);
    if (!since) {
      return refuse_usage(console, "--since: \"" + flags.since +
                                       "\" is neither a duration, such as 10m, nor a time, such as "
                                       "2026-01-02T15:04:05Z");
    }
    const auto seconds = std::chrono::floor<std::chrono::seconds>(*since);
    request.mutable_since()->set_seconds(seconds.time_since_epoch().count());
    request.mutable_since()->set_nanos(static_cast<std::int32_t>((*since - seconds).count()));
  }
  const Interrupt interrupt;
  std::stop_source stop;
  const std::stop_callback on_signal(interrupt.token(), [&stop] { stop.request_stop(); });
  OutputWriters writers(console, flags, stop);
  const sdk::OutputSinks sinks = writers.sinks();
  sdk::ContainerLogFollower log(client, request, {.stop = stop.get_token()});
  while (true) {
    const auto piece = log.next();
    if (writers.has_failed()) return writers.report(console);
    if (!piece && interrupt.token().stop_requested()) return interrupt.exit_code();
    if (!piece) return fail_call(console, "read container logs", piece.error());
    if (!*piece) return kSuccess;
    const bool is_stdout = (*piece)->stream() == v1::OUTPUT_STREAM_STDOUT;
    const auto& sink = is_stdout ? sinks.on_stdout : sinks.on_stderr;
    if (sink) sink((*piece)->data());
    if (writers.has_failed()) return writers.report(console);
  }
}

int show_logs(Console& console, const LogsFlags& flags) {
  const bool has_choice = flags.stream_flag->count() > 0;
  if (has_choice && flags.stream != "stdout" && flags.stream != "stderr") {
    return refuse_usage(console, "--stream must be \"stdout\" or \"stderr\"");
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  if (flags.is_of_container()) {
    const auto sandbox = find_sandbox(*client, flags.id);
    if (!sandbox) return fail_call(console, "read container logs", sandbox.error());
    return show_container_logs(console, *client, flags, sandbox->sandbox_id(), flags.container);
  }
  const auto exec = find_exec(*client, flags.id);
  if (!exec) {
    // As docker logs: the log of the container that a sandbox is.
    const auto sandbox = find_sandbox(*client, flags.id);
    if (!sandbox) return fail_call(console, "read exec output", exec.error());
    return show_container_logs(console, *client, flags, sandbox->sandbox_id(), kPrimary);
  }
  for (const CLI::Option* flag : {flags.tail_flag, flags.since_flag}) {
    if (flag->count() == 0) continue;
    return refuse_usage(console, flag->get_name() + " requires --container");
  }
  return show_exec_logs(console, *client, flags, exec->exec_id());
}

}  // namespace

void add_logs(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "logs", "Show the output of an exec or of a container", show_logs);
  command.add_option("id", flags.id, "Exec ID, or sandbox ID, or its beginning")->required();
  flags.container_flag =
      command
          .add_option("--container", flags.container,
                      "Show the log of this container: primary (the command of sandbox create, not "
                      "execs), or a service or companion")
          ->type_name("NAME")
          ->take_last();
  command.add_flag("-f,--follow", flags.follow,
                   "Follow the output until the exec ends, or the container is removed");
  flags.since_flag = command
                         .add_option("--since", flags.since,
                                     "With --container: only output since this time or age, e.g. "
                                     "2026-01-02T15:04:05Z or 10m")
                         ->type_name("TIME")
                         ->take_last();
  flags.stream_flag = command
                          .add_option("--stream", flags.stream,
                                      "Print only this stream (stdout or stderr), to stdout")
                          ->type_name("STREAM")
                          ->take_last();
  flags.tail_flag = command
                        .add_option("--tail", flags.tail,
                                    "With --container: number of lines to show from the end")
                        ->type_name("LINES")
                        ->take_last();
}

}  // namespace agbox::cli
