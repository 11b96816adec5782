// SPDX-License-Identifier: Apache-2.0
// agbox logs: prints the output of an exec unchanged, and follows it.
#include <agbox/exec_run.h>

#include <functional>
#include <stop_token>
#include <system_error>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/format/exec_text.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct LogsFlags {
  std::string exec_id;
  std::string stream;
  CLI::Option* stream_flag = nullptr;
  bool follow = false;
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

int show_logs(Console& console, const LogsFlags& flags) {
  const bool has_choice = flags.stream_flag->count() > 0;
  if (has_choice && flags.stream != "stdout" && flags.stream != "stderr") {
    return refuse_usage(console, "--stream must be \"stdout\" or \"stderr\"");
  }
  const auto client = open_client(console);
  if (!client) return kRuntimeError;
  const Interrupt interrupt;
  std::stop_source stop;
  const std::stop_callback on_signal(interrupt.token(), [&stop] { stop.request_stop(); });
  OutputWriter out(console, &Console::write_stdout, stop);
  OutputWriter error(console, &Console::write_stderr, stop);
  // A stream selected with --stream is the result, so it goes to stdout.
  sdk::OutputSinks sinks{.on_stdout = std::ref(out), .on_stderr = std::ref(error)};
  if (has_choice && flags.stream == "stdout") sinks.on_stderr = nullptr;
  if (has_choice && flags.stream == "stderr") sinks = {.on_stderr = std::ref(out)};
  const auto read =
      sdk::read_output(*client, flags.exec_id, sinks, {.stop = stop.get_token()},
                       flags.follow ? sdk::OutputExtent::UntilExit : sdk::OutputExtent::SoFar);
  if (out.problem() != 0) {
    console.error("write to stdout: " + std::generic_category().message(out.problem()));
  }
  if (out.problem() != 0 || error.problem() != 0) return kRuntimeError;
  if (!read && interrupt.token().stop_requested()) return interrupt.exit_code();
  if (!read) return fail_call(console, "read exec output", read.error());
  v1::GetExecRequest request;
  request.set_exec_id(flags.exec_id);
  const auto response = client->get_exec(request);
  if (!response) return fail_call(console, "get exec", response.error());
  const std::string warning = truncation_text(response->exec());
  if (!warning.empty()) console.error(warning);
  return kSuccess;
}

}  // namespace

void add_logs(CommandLine& line, CLI::App& parent) {
  auto [command, flags] = line.add(parent, "logs", "Show the output of an exec", show_logs);
  command.add_option("exec_id", flags.exec_id, "Exec ID")->required();
  command.add_flag("-f,--follow", flags.follow, "Follow the output until the exec ends");
  flags.stream_flag = command
                          .add_option("--stream", flags.stream,
                                      "Print only this stream (stdout or stderr), to stdout")
                          ->type_name("STREAM")
                          ->take_last();
}

}  // namespace agbox::cli
