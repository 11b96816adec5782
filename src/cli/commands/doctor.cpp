// SPDX-License-Identifier: Apache-2.0
// agbox doctor: whether this machine has all that sandboxes need, and what mends it where not. The
// daemon looks; where none answers, this program looks for what it can see itself.
#include <agbox/daemon_traces.h>
#include <agbox/raw_client.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/default_image.h"
#include "cli/finding_text.h"
#include "cli/message_json.h"
#include "model/absence.h"

namespace agbox::cli {

namespace {

struct DoctorFlags {
  bool json = false;
};

// Engine, firewall and every running sandbox are asked, each with a deadline of its own.
constexpr sdk::CallOptions kPatience{.timeout = std::chrono::seconds(60)};

int show(Console& console, const DoctorFlags& flags, const v1::DiagnoseResponse& response) {
  console.out(flags.json ? message_json(response) : findings_text(response));
  return has_broken(response) ? kRuntimeError : kSuccess;
}

// How to start it is told as the remedy.
std::string why_silent(const sdk::Error& error) {
  if (!error.socket) return error.message;
  const bool is_absent = error.socket->problem == sdk::SocketProblem::Missing ||
                         error.socket->problem == sdk::SocketProblem::NobodyListens;
  if (!is_absent) return error.message;
  return "agboxd is not running: nobody listens at " + error.socket->path.string();
}

int look_without_daemon(Console& console, const DoctorFlags& flags, const sdk::Error& silence) {
  const auto traces = sdk::look_for_daemon();
  if (!traces) return fail_call(console, "doctor", traces.error());
  return show(console, flags,
              judge_absence({.why = why_silent(silence),
                             .lock = traces->lock,
                             .lock_holder = traces->lock_holder,
                             .program = traces->program,
                             .may_change_firewall = traces->may_change_firewall,
                             .store = traces->store,
                             .store_problem = traces->store_problem,
                             .config_file = traces->config_file,
                             .has_config_file = traces->has_config_file,
                             .engine = {.socket = traces->engine.socket,
                                        .problem = traces->engine.problem,
                                        .is_denied = traces->engine.is_denied,
                                        .server = traces->engine.server,
                                        .api_version = traces->engine.api_version}}));
}

bool is_silence(const sdk::Error& error) {
  return error.kind == sdk::ErrorKind::Unreachable || error.kind == sdk::ErrorKind::Timeout;
}

int doctor(Console& console, const DoctorFlags& flags) {
  const auto client = sdk::RawClient::open();
  if (!client) return fail_call(console, "doctor", client.error());
  const auto answer = client->ping();
  if (!answer && is_silence(answer.error())) {
    return look_without_daemon(console, flags, answer.error());
  }
  if (!answer) return fail_call(console, "doctor", answer.error());
  if (std::ranges::find(answer->features(), "diagnose") == answer->features().end()) {
    console.error("doctor: agboxd " + answer->version() +
                  " is older than this agbox and cannot diagnose; update it, then: systemctl "
                  "--user restart agboxd");
    return kRuntimeError;
  }
  v1::DiagnoseRequest request;
  request.add_images(kDefaultImage);
  const auto findings = client->diagnose(request, kPatience);
  if (!findings && is_silence(findings.error())) {
    return look_without_daemon(console, flags, findings.error());
  }
  if (!findings) return fail_call(console, "doctor", findings.error());
  return show(console, flags, *findings);
}

}  // namespace

void add_doctor(CommandLine& line, CLI::App& parent) {
  CLI::App& command = *parent.add_subcommand(
      "doctor",
      "Look whether this machine has all that sandboxes need; exit code 1 where something is "
      "broken");
  auto flags = std::make_shared<DoctorFlags>();
  command.add_flag("--json", flags->json, "Print the findings as JSON");
  line.on(command, [flags](Console& console) { return doctor(console, *flags); });
}

}  // namespace agbox::cli
