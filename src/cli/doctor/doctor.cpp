// SPDX-License-Identifier: Apache-2.0
// agbox doctor: checks that this machine meets the requirements of sandboxes, and prints a fix for
// what does not. The daemon runs the checks; if it is unreachable, agbox runs those that it can.
#include <agbox/daemon_inspection.h>
#include <agbox/raw_client.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/daemon_client.h"
#include "cli/default_image.h"
#include "cli/doctor/finding_text.h"
#include "cli/doctor/unreachable_daemon.h"
#include "cli/format/message_json.h"
#include "cli/wait_report.h"

namespace agbox::cli {

namespace {

struct DoctorFlags {
  bool json = false;
};

// The daemon checks the engine, the firewall and every sandbox, each with its own deadline.
constexpr sdk::CallOptions kDiagnoseTimeout{.timeout = std::chrono::seconds(60)};

int show(Console& console, const DoctorFlags& flags, const v1::DiagnoseResponse& response) {
  console.out(flags.json ? message_json(response) : findings_text(response));
  return has_broken(response) ? kRuntimeError : kSuccess;
}

// Without the advice to start it: the finding has its own remedy.
std::string unreachable_reason(const sdk::Error& error) {
  if (!error.socket) return error.message;
  const bool is_not_running = error.socket->problem == sdk::SocketProblem::Missing ||
                              error.socket->problem == sdk::SocketProblem::NotListening;
  if (!is_not_running) return error.message;
  return "agboxd is not running: no process listens on " + error.socket->path.string();
}

int diagnose_without_daemon(Console& console, const DoctorFlags& flags, const sdk::Error& error) {
  return show(console, flags,
              judge_unreachable_daemon(unreachable_reason(error), sdk::inspect_daemon()));
}

bool is_unreachable(const sdk::Error& error) {
  return error.kind == sdk::ErrorKind::Unreachable || error.kind == sdk::ErrorKind::Timeout;
}

int doctor(Console& console, const DoctorFlags& flags) {
  const auto client = sdk::RawClient::open();
  if (!client) return diagnose_without_daemon(console, flags, client.error());
  const auto response = client->ping();
  if (!response && is_unreachable(response.error())) {
    return diagnose_without_daemon(console, flags, response.error());
  }
  if (!response) return fail_call(console, "doctor", response.error());
  if (std::ranges::find(response->features(), "diagnose") == response->features().end()) {
    console.failure("doctor: agboxd " + response->version() +
                    " is too old to run checks: update it, then run \"systemctl --user restart "
                    "agboxd\"");
    return kRuntimeError;
  }
  v1::DiagnoseRequest request;
  request.add_images(kDefaultImage);
  const SystemClock clock;
  const auto findings = [&] {
    const WaitReport waiting(console, clock, "Checking this machine");
    return client->diagnose(request, kDiagnoseTimeout);
  }();
  if (!findings && is_unreachable(findings.error())) {
    return diagnose_without_daemon(console, flags, findings.error());
  }
  if (!findings) return fail_call(console, "doctor", findings.error());
  return show(console, flags, *findings);
}

}  // namespace

void add_doctor(CommandLine& line, CLI::App& parent) {
  auto [command, flags] =
      line.add(parent, "doctor",
               "Check this machine for problems; exit code 1 if something is broken", doctor);
  command.add_flag("--json", flags.json, "Print the findings as JSON");
}

}  // namespace agbox::cli
