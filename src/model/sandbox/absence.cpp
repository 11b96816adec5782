// SPDX-License-Identifier: Apache-2.0
#include "model/sandbox/absence.h"

#include "model/doctor/findings.h"

namespace agbox {
namespace {

void judge_silence(const AbsenceFacts& facts, Findings& findings) {
  if (!facts.lock_holder) {
    findings.broken("daemon", facts.why,
                    "systemctl --user start agboxd, or run: " +
                        (facts.program.empty() ? "agboxd" : facts.program));
    return;
  }
  const std::string process = std::to_string(*facts.lock_holder);
  findings.broken("daemon",
                  facts.why + "; process " + process +
                      " is an agboxd that starts, ends or hangs: it holds " + facts.lock,
                  "see what it says with: journalctl --user -u agboxd; end it with: kill " +
                      process + "; then: systemctl --user start agboxd");
}

void judge_program(const AbsenceFacts& facts, Findings& findings) {
  if (facts.program.empty()) {
    findings.broken("capability", "there is no agboxd beside this agbox, and none on PATH",
                    "install agents-sandbox, or put the folder of agboxd on PATH");
  } else if (facts.may_change_firewall) {
    findings.ok("capability", facts.program + " may change the firewall (CAP_NET_ADMIN)");
  } else {
    findings.broken(
        "capability",
        facts.program + " refuses to start: it may not change the firewall (CAP_NET_ADMIN)",
        "sudo setcap cap_net_admin+ep " + facts.program);
  }
}

void judge_files(const AbsenceFacts& facts, Findings& findings) {
  if (!facts.store_problem.empty()) {
    findings.broken("store",
                    "agboxd could not write its store " + facts.store + ": " + facts.store_problem,
                    "make that folder writable for you, or set XDG_DATA_HOME to one that is");
  } else {
    findings.ok("store", facts.store + " can be written");
  }
  findings.ok("configuration",
              facts.config_file + (facts.has_config_file ? " is read at the start"
                                                         : " is not there: the defaults hold"));
  if (!facts.lock_holder) findings.ok("lock", "nobody holds " + facts.lock);
}

void judge_engine_from_outside(const AbsenceFacts::Engine& engine, Findings& findings) {
  if (engine.problem.empty()) {
    findings.ok("engine",
                (engine.server.empty() ? "an engine" : engine.server) +
                    (engine.api_version.empty() ? "" : " (API " + engine.api_version + ")") +
                    " answers at " + engine.socket);
  } else if (engine.socket.empty()) {
    findings.broken("engine", engine.problem, "unset DOCKER_HOST");
  } else if (engine.is_denied) {
    findings.broken("engine",
                    "you may not use the engine at " + engine.socket + ": " + engine.problem,
                    "sudo usermod -aG docker $USER, and log in again");
  } else {
    findings.broken("engine", "no engine answers at " + engine.socket + ": " + engine.problem,
                    "sudo systemctl start docker");
  }
}

}  // namespace

v1::DiagnoseResponse judge_absence(const AbsenceFacts& facts) {
  Findings findings;
  judge_silence(facts, findings);
  judge_program(facts, findings);
  judge_files(facts, findings);
  judge_engine_from_outside(facts.engine, findings);
  return findings.take();
}

}  // namespace agbox
