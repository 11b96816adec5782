// SPDX-License-Identifier: Apache-2.0
// agbox logs: what an exec wrote, byte by byte, and what it goes on to write.
#include <agbox/exec_run.h>

#include <functional>
#include <memory>
#include <stop_token>
#include <system_error>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/exec_text.h"
#include "cli/interrupt.h"

namespace agbox::cli {

namespace {

struct LogsFlags {
  std::string exec_id;
  std::string stream;
  CLI::Option* stream_flag = nullptr;
  bool follow = false;
};

// Writes to one descriptor until that fails; then nothing is worth reading any more.
class Outlet {
 public:
  using Pass = int (Console::*)(std::string_view) const;
  Outlet(const Console& console, Pass pass, std::stop_source& stop)
      : console_(console), pass_(pass), stop_(stop) {}

  void operator()(std::string_view bytes) {
    if (problem_ != 0) return;
    problem_ = (console_.*pass_)(bytes);
    if (problem_ != 0) stop_.request_stop();
  }
  int problem() const { return problem_; }

 private:
  const Console& console_;
  Pass pass_;
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
  Outlet out(console, &Console::pass_to_stdout, stop);
  Outlet error(console, &Console::pass_to_stderr, stop);
  // The one stream that was asked for is the result, whichever it is.
  sdk::OutputSinks sinks{.on_stdout = std::ref(out), .on_stderr = std::ref(error)};
  if (has_choice && flags.stream == "stdout") sinks.on_stderr = nullptr;
  if (has_choice && flags.stream == "stderr") sinks = {.on_stderr = std::ref(out)};
  const auto read =
      sdk::read_output(*client, flags.exec_id, sinks, {.stop = stop.get_token()},
                       flags.follow ? sdk::OutputExtent::UntilTheEnd : sdk::OutputExtent::SoFar);
  if (out.problem() != 0) {
    console.error("write to stdout: " + std::generic_category().message(out.problem()));
  }
  if (out.problem() != 0 || error.problem() != 0) return kRuntimeError;
  if (!read && interrupt.token().stop_requested()) return interrupt.exit_code();
  if (!read) return fail_call(console, "read exec output", read.error());
  v1::GetExecRequest request;
  request.set_exec_id(flags.exec_id);
  const auto answer = client->get_exec(request);
  if (!answer) return fail_call(console, "get exec", answer.error());
  if (const std::string lost = truncation_text(answer->exec()); !lost.empty()) console.error(lost);
  return kSuccess;
}

}  // namespace

void add_logs(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand("logs", "Show what an exec wrote");
  // Shared by the parser, which sets them, and the action, which reads them later.
  auto flags = std::make_shared<LogsFlags>();
  command.add_option("exec_id", flags->exec_id, "Which one")->required();
  command.add_flag("-f,--follow", flags->follow, "Go on with what it writes until it ends");
  flags->stream_flag =
      command.add_option("--stream", flags->stream, "Only stdout or stderr, and that on stdout")
          ->type_name("STREAM")
          ->take_last();
  line.on(command, [flags](Console& console) { return show_logs(console, *flags); });
}

}  // namespace agbox::cli
